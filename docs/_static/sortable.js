// Tables of class "sortable": a click on a head sorts the rows by its column, another click the other way round.
// A cell with data-order is sorted by that number; cells without a value come last.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.textContent) return;
      head.tabIndex = 0;
      const value = (row) => {
        const cell = row.cells[column];
        if (cell.dataset.order === undefined) return cell.textContent;
        return cell.dataset.order === "" ? NaN : Number(cell.dataset.order);
      };
      const compared = (a, b) => {
        if (typeof a === "string") return a.localeCompare(b, "en", { numeric: true });
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return a - b;
      };
      const sort = () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows];
        rows.sort((a, b) => {
          const order = compared(value(a), value(b));
          const missing = [value(a), value(b)].some((each) => Number.isNaN(each));
          return down && !missing ? -order : order;
        });
        body.append(...rows);
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter") sort();
      });
    });
  }
});
