(* Reads a certificate and asks the checker that was extracted. Trusted: this file, the mapping of numbers in
   Extract.v, OCaml, Zarith, and the digests of the library `sha`.

   A line of a certificate is the one way to write its record: an object with sorted keys, without spaces,
   in ASCII. The parser accepts nothing else, so nothing has to be written again to be compared. *)

module Big = Z  (* Zarith; the extracted code has a module Z of its own *)
module Rational = Q
open Proven

exception Rejected of string
exception Not_covered of string

let reject format = Printf.ksprintf (fun message -> raise (Rejected message)) format
let need fine format = Printf.ksprintf (fun message -> if not fine then raise (Rejected message)) format

type value = Whole of Big.t | Flag of bool | Text of string | Row of value list | Record of (string * value) list

(* ---- one line ---------------------------------------------------------------------------------- *)

let parse number line =
  let length = String.length line in
  let at = ref 0 in
  let wrong what = reject "line %d, character %d: %s" number (!at + 1) what in
  let peek () = if !at < length then line.[!at] else wrong "the line ends too early" in
  let next () = let c = peek () in incr at; c in
  let expect c = if next () <> c then (decr at; wrong (Printf.sprintf "%C expected" c)) in
  let hexadecimal () =
    let digits = Bytes.create 4 in
    for k = 0 to 3 do
      match next () with
      | ('0' .. '9' | 'a' .. 'f') as c -> Bytes.set digits k c
      | _ -> wrong "an escape is not in canonical form"
    done;
    int_of_string ("0x" ^ Bytes.to_string digits) in
  (* What Python writes without an escape, or with a short one, must be written so. Escapes of characters
     that are not printable ASCII are kept, behind a character that stands nowhere else. *)
  let text () =
    expect '"';
    let found = Buffer.create 16 in
    let rec more () =
      match next () with
      | '"' -> Buffer.contents found
      | '\\' ->
        (match next () with
         | ('"' | '\\') as c -> Buffer.add_char found c
         | ('n' | 'r' | 't' | 'b' | 'f') as c -> Buffer.add_string found (Printf.sprintf "\001%c" c)
         | 'u' ->
           let code = hexadecimal () in
           let short = List.mem code [8; 9; 10; 12; 13] || (code >= 32 && code < 127) in
           if short then wrong "an escape is not in canonical form";
           Buffer.add_string found (Printf.sprintf "\001u%04x" code)
         | _ -> wrong "an escape is not in canonical form");
        more ()
      | ' ' .. '~' as c -> Buffer.add_char found c; more ()
      | _ -> wrong "a character is not printable ASCII" in
    more () in
  let whole () =
    let first = !at in
    if peek () = '-' then incr at;
    let digits = !at in
    while !at < length && line.[!at] >= '0' && line.[!at] <= '9' do incr at done;
    let written = String.sub line first (!at - first) in
    let zero_first = !at - digits > 1 && line.[digits] = '0' in
    if !at = digits || zero_first || written = "-0" then wrong "no number in canonical form";
    Big.of_string written in
  let rec value () =
    match peek () with
    | '"' -> Text (text ())
    | '[' ->
      incr at;
      if peek () = ']' then (incr at; Row []) else begin
        let rec more found =
          let found = value () :: found in
          match next () with
          | ',' -> more found
          | ']' -> Row (List.rev found)
          | _ -> wrong "',' or ']' expected" in
        more []
      end
    | '{' ->
      incr at;
      if peek () = '}' then (incr at; Record []) else begin
        let rec more found =
          let key = text () in
          (match found with
           | (before, _) :: _ when compare before key >= 0 -> wrong "keys are not sorted"
           | _ -> ());
          expect ':';
          let found = (key, value ()) :: found in
          match next () with
          | ',' -> more found
          | '}' -> Record (List.rev found)
          | _ -> wrong "',' or '}' expected" in
        more []
      end
    | '-' | '0' .. '9' -> Whole (whole ())
    | 't' -> String.iter expect "true"; Flag true
    | 'f' -> String.iter expect "false"; Flag false
    | _ -> wrong "no value in canonical form" in
  let found = value () in
  if !at <> length then wrong "something follows the record";
  match found with
  | Record fields -> fields
  | _ -> reject "line %d is not an object" number

(* ---- values -------------------------------------------------------------------------------------- *)

let largest = Big.pow (Big.of_int 2) 100
let most = Big.pow (Big.of_int 10) 1000

let field fields name =
  match List.assoc_opt name fields with
  | Some value -> value
  | None -> reject "a record lacks the field %s" name

let whole ?(least = Big.zero) what = function
  | Whole n when Big.leq least n && Big.leq n largest -> n
  | _ -> reject "%s is not an integer from %s to 2^100" what (Big.to_string least)

let small what value =
  let n = whole what value in
  need (Big.fits_int n) "%s is too large" what;
  Big.to_int n

let rows what = function Row found -> found | _ -> reject "%s is no list" what

let pair what = function
  | Row [first; second] -> (first, second)
  | _ -> reject "%s is not a pair" what

let name what = function
  | Text found ->
    (* An escape that was kept: beyond ASCII, or a control character. Which of the former print, only
       tables of Unicode say. *)
    let escaped = ref false and beyond = ref false in
    String.iteri
      (fun k c ->
         if c = '\001' then
           if found.[k + 1] = 'u' && not (String.sub found (k + 2) 2 = "00" && found.[k + 4] < '8')
           then beyond := true
           else escaped := true)
      found;
    let length = String.length found in
    need (length > 0 && length <= 1000 && not !escaped) "%s is not a printable name of 1 to 1,000 characters" what;
    if !beyond then raise (Not_covered (what ^ " is not ASCII"));
    found
  | _ -> reject "%s is not a name" what

let fraction numerator denominator = { qnum = numerator; qden = denominator }

let rational what = function
  | Whole n when Big.leq Big.zero n && Big.lt n most -> fraction n Big.one
  | Text written ->
    let fine part =
      let length = String.length part in
      length > 0 && length <= 1000 && (length = 1 || part.[0] <> '0')
      && String.for_all (fun c -> c >= '0' && c <= '9') part in
    (match String.split_on_char '/' written with
     | [numerator; denominator] when fine numerator && fine denominator ->
       let n = Big.of_string numerator and d = Big.of_string denominator in
       need (Big.gt d Big.one && Big.equal (Big.gcd n d) Big.one) "%s is not in lowest terms" what;
       fraction n d
     | _ -> reject "%s is not an integer or \"p/q\"" what)
  | _ -> reject "%s is not an integer or \"p/q\" >= 0" what

(* ---- records ------------------------------------------------------------------------------------- *)

(* Kinds in their order, with the fields of all records and of some. *)
let fields_of = [
  "header", (["format"; "migration"; "objective"; "policy"; "restart"; "start"],
             ["placement"; "preemption"; "round"; "rounds"; "starts"; "stopped"; "types"; "utility"; "window"]);
  "copies", (["aggregation"; "most"; "restart"; "round"], []);
  "checkpoints", (["cost"; "interval"; "until"], []);
  "network", (["gpus"; "intra"; "nic"; "sharing"], []);
  "node", (["gpus"; "node"; "type"], ["cpus"; "memory"]);
  "fault", (["down"; "node"; "up"], []);
  "quota", (["periods"; "quota"], []);
  "widths", (["speeds"; "widths"], []);
  "profile", (["cells"; "profile"], []);
  "graph", (["graph"; "links"; "microbatches"; "stages"], []);
  "job", (["arrival"; "gpus"; "id"; "job"; "run"; "weight"],
          ["beside"; "deadline"; "graph"; "part"; "profile"; "quota"; "rate"; "sort"; "spread"; "steps"; "widths"; "work"; "worth"]);
  "run", (["end"; "job"; "overhead"; "pieces"; "start"], ["copy"; "goes_on"; "partner"; "steps"]);
  "bound", (["bound"; "grid"; "prices"], ["jobs"; "least"; "rows"; "unit"]);
  "part", ([], ["at"; "cut"; "first"; "grid"; "prices"]);
  "claim", (["bound"; "class"; "file"; "instance"; "ratio"], ["cost"; "earned"]);
]

let kinds = List.map fst fields_of

(* Bounds that are not proven. *)
let bounds_beyond = ["typed-interval-lp"; "speed-up-power"]

(* Those at prices of resources, or of what these are of. *)
let prefixes_beyond = ["priced-fluid"; "priced-mean-busy-time"; "priced-span"; "interval-lp-of-"]

(* Of these the ones that are proven. *)
let of_modes = ["priced-fluid"; "priced-span"; "priced-fluid-of-amounts"; "priced-span-of-amounts"]
let of_nodes = ["priced-fluid-of-nodes"; "priced-span-of-nodes"]

let is_beyond bound =
  List.mem bound bounds_beyond
  || (not (List.mem bound (of_modes @ of_nodes)) && List.exists (fun prefix -> String.starts_with ~prefix bound) prefixes_beyond)


let position kind = 
  let rec find k = function
    | [] -> None
    | first :: rest -> if first = kind then Some k else find (k + 1) rest in
  find 0 kinds

let digest lines = Sha256.to_hex (Sha256.string (String.concat "\n" lines))

(* Words of a class, and numbers of seconds in them, which are ticks of 2^-20 s. *)
type words = Words of string | Seconds of Big.t

let need_words written expected =
  let length = String.length written in
  let other () = reject "the class is another" in
  let rec follow at = function
    | [] -> if at <> length then other ()
    | Words part :: rest ->
      let n = String.length part in
      if at + n <= length && String.sub written at n = part then follow (at + n) rest else other ()
    | Seconds ticks :: rest ->
      (* Beyond 2^53 ticks there are fewer doubles than numbers of ticks. *)
      if Big.gt ticks (Big.pow (Big.of_int 2) 53) then raise (Not_covered "a time in the class");
      let past = ref at in
      while !past < length && (let c = written.[!past] in (c >= '0' && c <= '9') || String.contains ".e-" c) do incr past done;
      let seconds = String.sub written at (!past - at) in
      if float_of_string_opt seconds <> Some (Big.to_float ticks /. 1048576.0) then other ();
      follow !past rest in
  follow 0 expected

(* The line of the claim without its field `file`, which is the digest of all lines. *)
let unsigned line signature =
  let part = Printf.sprintf {|"file":"%s",|} signature in
  let length = String.length part in
  let rec find k =
    if k + length > String.length line then reject "the digest of the file is no text"
    else if String.sub line k length = part then k
    else find (k + 1) in
  let k = find 0 in
  String.sub line 0 k ^ String.sub line (k + length) (String.length line - k - length)

type fields = (string * value) list

type certificate_file = {
  header : fields; all_copies : fields list; checkpoints : fields list; nodes : fields list; faults : fields list; quotas : fields list;
  widths : fields list; profiles : fields list; networks : fields list; all_graphs : fields list; jobs : fields list; runs : fields list; bound : fields;
  parts : fields list; claim : fields;
}

let read text =
  need (text <> "" && text.[String.length text - 1] = '\n') "the file does not end with a line break";
  let lines = String.split_on_char '\n' (String.sub text 0 (String.length text - 1)) in
  let latest = ref 0 in
  let records =
    List.mapi
      (fun k line ->
         let number = k + 1 in
         let record = parse number line in
         let kind = match List.assoc_opt "kind" record with
           | Some (Text kind) -> kind
           | _ -> reject "line %d has no kind" number in
         let place = match position kind with
           | Some place -> place
           | None -> reject "line %d: kind is %S" number kind in
         need (place >= !latest) "line %d: %s comes too late" number kind;
         latest := place;
         (match kind, List.assoc_opt "bound" record with
          | "bound", Some (Text bound) when is_beyond bound -> raise (Not_covered ("the bound " ^ bound))
          | _ -> ());
         let fields = List.filter (fun (key, _) -> key <> "kind") record in
         let names = List.map fst fields in
         let always, sometimes = List.assoc kind fields_of in
         let plain = List.filter (fun name -> not (List.mem name sometimes)) names in
         need (plain = always) "line %d: fields of %s" number kind;
         (kind, fields, line))
      lines in
  let of_kind kind = List.filter (fun (k, _, _) -> k = kind) records in
  let one kind = match of_kind kind with
    | [(_, fields, line)] -> (fields, line)
    | found -> reject "%d lines are of kind %s, not one" (List.length found) kind in
  let all kind = List.map (fun (_, fields, _) -> fields) (of_kind kind) in
  let header, _ = one "header" and bound, _ = one "bound" and claim, claim_line = one "claim" in
  need (field header "format" = Whole (Big.of_int 3)) "format is not 3";
  let given =
    List.filter_map (fun (k, _, line) -> if List.mem k ["header"; "run"; "bound"; "part"; "claim"] then None else Some line)
      records in
  need (field claim "instance" = Text (digest given)) "the digest of the instance is another";
  (match field claim "file" with
   | Text signature ->
     let before = List.filteri (fun k _ -> k < List.length lines - 1) lines in
     need (signature = digest (before @ [unsigned claim_line signature]))
       "the digest of the file is another"
   | _ -> reject "the digest of the file is no text");
  { header; all_copies = all "copies"; checkpoints = all "checkpoints"; nodes = all "node"; faults = all "fault"; quotas = all "quota";
    widths = all "widths"; profiles = all "profile"; networks = all "network"; all_graphs = all "graph"; jobs = all "job"; runs = all "run"; bound;
    parts = all "part"; claim }

(* ---- instance ------------------------------------------------------------------------------------ *)

let whole_gpu = Big.of_int 1000

(* A number >= 0 that is a double, exactly. *)
let double what value =
  let { qnum; qden } = rational what value in
  let number = Big.to_float qnum /. Big.to_float qden in
  if Float.is_nan number then raise (Not_covered what);
  need (Float.is_finite number && Rational.equal (Rational.of_float number) (Rational.make qnum qden))
    "%s is no double" what;
  number

let longest_exact = Big.pow (Big.of_int 2) 53

(* Ticks at a speed, in doubles, rounded up: the definition of such times. *)
let slower ticks speed =
  if speed = 1.0 then ticks
  else begin
    need (Big.leq ticks longest_exact) "a run time is divided by a speed, and is no double up to 2^53";
    let longer = ceil (Big.to_float ticks /. speed) in
    need (Float.is_finite longer) "a run time is too long";
    Big.max (Big.of_float longer) Big.one
  end

let rec increasing before = function
  | first :: (second :: _ as rest) -> before first second && increasing before rest
  | _ -> true

let numbered kind fields k = need (small kind (field fields kind) = k) "%s %d is out of order" kind k

let optional fields name read = Option.map read (List.assoc_opt name fields)

let word fields name value =
  match List.assoc_opt name fields with
  | None -> false
  | Some (Text text) when text = value -> true
  | Some _ -> reject "%s is not %s" name value

(* A row of a profile: thousandths of CPUs and memory of a GPU, and the speed with them. *)
type cell = { cpus : Big.t; memory : Big.t; speed : float }

let profile_of k fields =
  numbered "profile" fields k;
  let cells =
    List.map
      (function
        | Row [cpus; memory; speed] ->
          { cpus = whole "CPUs" cpus; memory = whole "memory" memory; speed = double "speed of a profile" speed }
        | _ -> reject "a row of a profile has not three entries")
      (rows "cells" (field fields "cells")) in
  need (cells <> [] && List.for_all (fun cell -> cell.speed > 0.0) cells) "a profile has no speeds, or one of 0";
  Array.of_list cells

(* Speeds of gangs that hold as many GPUs as theirs, one more, and so on. *)
let widths_of k fields =
  numbered "widths" fields k;
  let speeds = List.map (double "speed of a width") (rows "speeds" (field fields "speeds")) in
  need (match speeds with first :: _ -> first = 1.0 && List.for_all (fun speed -> speed > 0.0) speeds | [] -> false)
    "a gang's own speed is not 1, or one is 0";
  Array.of_list speeds

(* Numbers of a graph, which have a denominator in common of at most 1,000 digits. *)
let number_of_graph common what value =
  let found = rational what value in
  common := Big.lcm !common found.qden;
  need (Big.lt !common most) "a graph's numbers have no common denominator of at most 1,000 digits";
  found

let add a b = fraction (Big.add (Big.mul a.qnum b.qden) (Big.mul b.qnum a.qden)) (Big.mul a.qden b.qden)

let graph_of_record k fields =
  numbered "graph" fields k;
  let common = ref Big.one in
  let number = number_of_graph common in
  let stage = function
    | Row [replicas; forward; backward; size] ->
      let forward = number "a stage" forward in
      let backward = number "a stage" backward in
      { replicas = whole ~least:Big.one "replicas" replicas; compute = add forward backward; parameters = number "a stage" size }
    | _ -> reject "a stage has not four entries" in
  let stages = List.map stage (rows "stages" (field fields "stages")) in
  let count = List.length stages in
  need (count > 0) "a graph has no stages";
  need (count <= 256) "a graph has more than 256 stages";
  let gpus = List.fold_left (fun sum (each : stage) -> Big.add sum each.replicas) Big.zero stages in
  need (Big.leq gpus (Big.of_int 1_000_000)) "a graph is on more than 10^6 GPUs";
  let link = function
    | Row [source; target; bytes; Flag exchange] ->
      let source = small "stage of a link" source and target = small "stage of a link" target in
      need (source <> target && source < count && target < count) "a link is of no stages";
      { source; target; sent = number "bytes" bytes; exchange }
    | _ -> reject "a link has not four entries" in
  let links = List.map link (rows "links" (field fields "links")) in
  need (List.length links <= 4096) "a graph has more than 4096 links";
  let graph = { microbatches = whole "microbatches" (field fields "microbatches"); stages; links } in
  need (Big.leq (depth graph) (Big.of_int count)) "links go round";
  (graph, gpus)

let network_of fields =
  let bandwidth name =
    let found = rational name (field fields name) in
    need (Big.gt found.qnum Big.zero) "a bandwidth is 0";
    found in
  { intra = bandwidth "intra"; nic = bandwidth "nic"; largest = whole ~least:Big.one "GPUs of a node" (field fields "gpus");
    each_gpu = (match field fields "sharing" with
      | Text "per-gpu" -> true | Text "per-job" -> false | _ -> reject "the sharing of the network is unknown") }

(* A job's graph, its iterations, and GPUs that it is on. *)
type with_graph = { its_graph : graph; its_work : float; its_gpus : Big.t; its_beside : (int * (Big.t * float) list) list }

let exactly number =
  let { Rational.num; den } = Rational.of_float number in
  fraction num den

(* What the speed of a job depends on beyond its GPUs. *)
type job_rules = {
  cells : cell array option; spread : float option; speeds : float array option; part : Big.t option; on_cores : bool;
  gpus_of_gang : int; sort : Big.t option; beside : (int * (Big.t * Big.t) list) list; plain : (int * Big.t) list;
  mapped : with_graph option;
}

(* A condition of a run: the sort of a partner, a row of the profile, whether it is spread, GPUs beyond the gang. *)
type run_condition = { partner_sort : Big.t option; row : int; apart : bool; wider : int }

let speed_in rules { row; apart; wider; _ } =
  let fed = match rules.cells with Some cells -> cells.(row).speed | None -> 1.0 in
  let near = if apart then Option.get rules.spread else 1.0 in
  let wide = match rules.speeds with Some speeds -> speeds.(wider) | None -> 1.0 in
  1.0 *. fed *. near *. wide

(* All conditions that there are, in the order of their numbers. *)
let conditions_of rules =
  let several = function Some found -> List.init (Array.length found) Fun.id | None -> [0] in
  let sorts = List.concat_map (fun (_, row) -> List.map fst row) rules.beside |> List.sort_uniq Big.compare in
  let every make found rest = List.concat_map (fun one -> List.map (make one) rest) found in
  let wider = List.map (fun wider -> { partner_sort = None; row = 0; apart = false; wider }) (several rules.speeds) in
  let apart = every (fun apart rest -> { rest with apart }) (if rules.spread = None then [false] else [false; true]) wider in
  let rows = every (fun row rest -> { rest with row }) (several rules.cells) apart in
  every (fun partner_sort rest -> { rest with partner_sort }) (None :: List.map Option.some sorts) rows

(* Ticks of all of the job on GPUs of a type, under a condition. *)
let ticks_in rules condition on =
  let ticks = match condition.partner_sort with
    | None -> List.assoc_opt on rules.plain
    | Some sort ->
      if List.mem_assoc on rules.plain then
        Option.bind (List.assoc_opt on rules.beside)
          (fun row -> Option.map snd (List.find_opt (fun (other, _) -> Big.equal other sort) row))
      else None in
  Option.map (fun ticks -> slower ticks (speed_in rules condition)) ticks

(* Fewest nodes of some sizes, the largest first, that hold so many GPUs. *)
let fewest sizes width =
  let rec more count held = function
    | size :: rest when Big.lt held width -> more (count + 1) (Big.add held size) rest
    | _ -> if Big.lt held width then count + 1 else count in
  more 0 Big.zero sizes

(* Trees of windows: a cut is followed by one of its parts with all below, and then the other. Moments are whole in
   parts of ticks, of which each has as many as the second number says. Empty prices are those of the part before. *)
let tree_of those parts =
  let fine = ref Big.one in
  let moment what value =
    let { qnum; qden } as found = rational what value in
    ignore qnum;
    fine := Big.lcm !fine qden;
    need (Big.lt !fine most) "moments have no common denominator";
    found in
  let left = ref parts and prices = ref None in
  let place j = let rec find k = function
      | [] -> reject "job %d is cut, which has no windows" j
      | first :: rest -> if first = j then k else find (k + 1) rest in
    find 0 those in
  let rec next () = match !left with
    | [] -> reject "some windows have no prices"
    | fields :: rest ->
      left := rest;
      (match List.map fst fields with
       | ["at"; "cut"; "first"] ->
         let job = place (small "job of a cut" (field fields "cut")) and at = moment "moment of a cut" (field fields "at") in
         let early = match field fields "first" with
           | Text "early" -> true
           | Text "late" -> false
           | _ -> reject "the first part of a cut is neither early nor late" in
         let one = next () in
         let other = next () in
         let up_to, from_then = if early then (one, other) else (other, one) in
         `Cut (job, at, up_to, from_then)
       | ["grid"; "prices"] ->
         let grid = rows "grid" (field fields "grid") and priced = rows "prices" (field fields "prices") in
         if grid <> [] || priced <> [] then begin
           let grid = List.map (moment "grid of windows") grid in
           let found = List.map (fun row -> List.map (whole "price") (rows "prices" row)) priced in
           let before a b = Big.lt (Big.mul a.qnum b.qden) (Big.mul b.qnum a.qden) in
           need (List.length grid > 1 && increasing before grid) "the grid of windows does not increase";
           need (List.length found = List.length those && List.for_all (fun row -> List.length row = List.length grid - 1) found)
             "there is not a price of each job in each cell";
           prices := Some (grid, found)
         end;
         (match !prices with
          | Some (grid, found) -> `Leaf (grid, found)
          | None -> reject "there are no prices before these windows")
       | _ -> reject "a part is neither a cut nor has prices") in
  let tree = next () in
  need (!left = []) "a part comes after all windows have prices";
  let fine = !fine in
  let whole { qnum; qden } = Big.mul qnum (Big.divexact fine qden) in
  let rec scaled = function
    | `Cut (job, at, up_to, from_then) -> Cut (job, whole at, scaled up_to, scaled from_then)
    | `Leaf (grid, found) -> Leaf (List.map whole grid, found) in
  (fine, scaled tree)

(* GPUs of which parts are held: no more than all of each, and one that is held in part counts as one of its node. *)
let check_parts nodes held =
  let by_node = Hashtbl.create 16 in
  List.iter
    (fun (node, event) -> Hashtbl.replace by_node node (event :: Option.value ~default:[] (Hashtbl.find_opt by_node node)))
    held;
  Hashtbl.iter
    (fun node events ->
       let in_order (t, more, _, _) (u, other, _, _) =
         let c = Big.compare t u in if c <> 0 then c else Bool.compare more other in
       let most = Big.to_int nodes.(node).gpus and now = ref 0 in
       let parts = Hashtbl.create 8 in
       List.iter
         (fun (_, more, number, amount) ->
            let sign = if more then 1 else -1 in
            if number < 0 then now := !now + sign * amount
            else begin
              let before = Option.value ~default:0 (Hashtbl.find_opt parts number) in
              let after = before + sign * amount in
              Hashtbl.replace parts number after;
              need (after <= 1000) "more than all of a GPU is held";
              if before = 0 then incr now;
              if after = 0 then decr now
            end;
            need (!now <= most) "a node has not so many GPUs")
         (List.stable_sort in_order events))
    by_node

(* ---- copies -------------------------------------------------------------------------------------- *)

(* What a certificate of copies has in common with others. *)
type frame = {
  of_header : fields; its_nodes : node array; its_types : (string, int) Hashtbl.t; its_thousandths : (Big.t * Big.t) array;
  known_until : Big.t option; its_faults : ((int * Big.t) * Big.t) list; its_quotas : (Big.t * Big.t) list list;
  its_profiles : cell array array; stopped : Big.t option; its_window : (int * int) option;
  of_utility : string list; utility_round : Big.t option;
}

let quotient a b = Rational.make (Big.mul a.qnum b.qden) (Big.mul a.qden b.qnum)
let product a b = let { Rational.num; den } = Rational.make (Big.mul a.qnum b.qnum) (Big.mul a.qden b.qden) in fraction num den
let times n x = product (fraction n Big.one) x
let up { Rational.num; den } = Big.cdiv num den
let down { Rational.num; den } = Big.fdiv num den
let is_less a b = Big.lt (Big.mul a.qnum b.qden) (Big.mul b.qnum a.qden)

(* A job that runs as copies: its type's rates, rows of its profile, and what its schedules do at least. *)
type copied_job = { work_steps : Big.t; its_rates : (int * q) list; its_cells : cell array option; its_quota : int option; p : Big.t; a : Big.t }

(* What all schedules of a job need at least: on the fastest nodes of all, and on the fastest GPU. *)
let least_of_copies nodes most steps rates best =
  let of_node (node : node) = match List.assoc_opt node.gpu_type rates with Some rate -> times node.gpus rate | None -> fraction Big.zero Big.one in
  let fastest_first = List.stable_sort (fun a b -> if is_less b a then -1 else if is_less a b then 1 else 0) (List.map of_node (Array.to_list nodes)) in
  let rec take count sum = function
    | first :: rest when count > 0 -> take (count - 1) (add sum first) rest
    | rest -> (sum, match rest with next :: _ -> next | [] -> fraction Big.zero Big.one) in
  let count = if Big.fits_int most then Big.to_int most else max_int in
  let fastest, theta = take count (fraction Big.zero Big.one) fastest_first in
  let fastest_rate = List.fold_left (fun found (_, rate) -> if is_less found rate then rate else found) (fraction Big.zero Big.one) rates in
  let least rate = Big.max Big.one (down (quotient (fraction steps Big.one) (product rate best))) in
  let gpus = Array.fold_left (fun sum (node : node) -> Big.add sum node.gpus) Big.zero nodes in
  let a = least fastest_rate in
  let p = Big.max (least fastest) (Big.div a gpus) in
  (p, Big.min a (Big.mul gpus p), product theta best)

(* The rules of copies, round by round: rounds apart, one copy on a node, charges, the time of the steps, quotas, nodes that
   are up; copies without steps were cut when all was over or their node went down, and could have done one more. Jobs
   that restart begin anew where no copy went on in the round before. Which jobs are complete. *)
let check_rounds frame restarting jobs rules copies required =
  let length, restart, aggregation, most = rules in
  let number = Array.length jobs in
  let steps_of = Array.make number Big.zero and ends = Array.make number Big.zero in
  let ran = Array.make number None in
  let last = Hashtbl.create 64 and cut = Hashtbl.create 8 and had = ref [] and latest = ref Big.zero in
  let downs node start =
    List.length (List.filter (fun ((other, down), _) -> other = node && Big.lt down start) frame.its_faults) in
  let over start follows round =
    let count = Hashtbl.create 16 and on_nodes = Hashtbl.create 16 and planned = Hashtbl.create 16 in
    List.iter
      (fun ({ its_run; _ }, copy, _) ->
         let mine = Option.value ~default:[] (Hashtbl.find_opt count its_run.of_job) in
         need (Big.lt copy most && not (List.exists (Big.equal copy) mine)) "job %d has a copy twice or more" its_run.of_job;
         Hashtbl.replace count its_run.of_job (copy :: mine);
         let node = fst (List.hd its_run.pieces) in
         need (not (Hashtbl.mem on_nodes node)) "a node has two copies";
         Hashtbl.replace on_nodes node ())
      round;
    let begin_ k _ =
      let goes_on = match ran.(k) with
        | Some (before, did) -> Big.gt did Big.zero && Big.equal (Big.add before length) start
        | None -> false in
      if restarting && not goes_on then begin
        need (Big.lt steps_of.(k) jobs.(k).work_steps) "job %d runs again after all steps of its work" k;
        steps_of.(k) <- Big.zero
      end in
    Hashtbl.iter begin_ count;
    let before = Array.copy steps_of in
    List.iter
      (fun ({ its_run; its_steps }, _, rate) ->
         let { of_job = k; stop; overhead; pieces; _ } = its_run in
         let node, _ = List.hd pieces in
         let owed = if List.length (Hashtbl.find count k) > 1 then aggregation else Big.zero in
         let now = (k, downs node start) in
         let owed = if Option.value ~default:now (Hashtbl.find_opt last node) = now then owed else Big.add owed restart in
         Hashtbl.replace last node now;
         let lasts = Big.sub stop start in
         let struck =
           List.exists (fun ((other, down), _) -> other = node && Big.equal down stop) frame.its_faults in
         need (List.for_all (fun ((other, down), up) -> other <> node || Big.geq down stop || Big.leq up start) frame.its_faults)
           "job %d runs on a node that is down" k;
         need (match frame.known_until with Some known -> Big.lt stop known | None -> true)
           "a run goes on when nobody knows which nodes are down";
         if Big.gt its_steps Big.zero then begin
           need (Big.equal overhead owed) "job %d owes another overhead" k;
           need (Big.equal (Big.sub lasts owed) (up (quotient (fraction its_steps Big.one) rate)) && Big.leq lasts length)
             "job %d ends neither with its steps nor with the round" k;
           ends.(k) <- Big.max ends.(k) stop
         end
         else begin
           need (Big.equal overhead (Big.min owed lasts)) "job %d owes another overhead" k;
           let more = Big.succ (down (let { qnum; qden } = times (Big.sub lasts overhead) rate in Rational.make qnum qden)) in
           need (Big.leq (Big.add owed (up (quotient (fraction more Big.one) rate))) length)
             "job %d ends neither with its steps nor with the round" k;
           if not struck then Hashtbl.replace cut (Big.to_string stop) ();
           Hashtbl.replace planned k (Big.add more (Option.value ~default:Big.zero (Hashtbl.find_opt planned k)))
         end;
         steps_of.(k) <- Big.add steps_of.(k) its_steps;
         latest := Big.max !latest stop)
      round;
    Hashtbl.iter
      (fun k _ ->
         ran.(k) <- Some (start, Big.sub steps_of.(k) before.(k));
         let all = Big.add steps_of.(k) (Option.value ~default:Big.zero (Hashtbl.find_opt planned k)) in
         need (Big.leq all jobs.(k).work_steps) "job %d does more steps than its work has" k)
      count;
    let held = Hashtbl.create 8 and begun = Hashtbl.create 8 in
    if frame.its_quotas <> [] then
      List.iter
        (fun ({ its_run; _ }, _, _) ->
           let node = fst (List.hd its_run.pieces) in
           match jobs.(its_run.of_job).its_quota with
           | None -> ()
           | Some quota ->
             Hashtbl.replace held quota
               (Big.add frame.its_nodes.(node).gpus (Option.value ~default:Big.zero (Hashtbl.find_opt held quota)));
             if not (follows && List.mem (its_run.of_job, node) !had) then Hashtbl.replace begun quota ())
        round;
    Hashtbl.iter
      (fun quota () ->
         let allowed = List.fold_left (fun now (begin_, most) -> if Big.leq begin_ start then most else now) Big.zero
             (List.nth frame.its_quotas quota) in
         need (Big.leq (Hashtbl.find held quota) allowed) "quota %d holds more GPUs than it has" quota)
      begun;
    had := List.filter_map
        (fun ({ its_run; its_steps }, _, _) ->
           if Big.gt its_steps Big.zero then Some (its_run.of_job, fst (List.hd its_run.pieces)) else None)
        round in
  let rec rounds before = function
    | [] -> ()
    | (({ its_run; _ }, _, _) :: _ as all) ->
      let start = its_run.start in
      let rec split mine = function
        | (({ its_run; _ }, _, _) as first) :: rest when Big.equal its_run.start start -> split (first :: mine) rest
        | rest -> (List.rev mine, rest) in
      let mine, rest = split [] all in
      need (match before with Some early -> Big.geq start (Big.add early length) | None -> true)
        "a run is out of order, or rounds are too near";
      over start (match before with Some early -> Big.equal start (Big.add early length) | None -> false) mine;
      rounds (Some start) rest in
  rounds None copies;
  Array.iteri
    (fun k { work_steps; _ } ->
       let complete = Big.equal steps_of.(k) work_steps in
       need (complete || not (required k)) "job %d does not all steps of its work" k;
       if not complete then ends.(k) <- Big.zero)
    jobs;
  let first, beyond = Option.value ~default:(0, number) frame.its_window in
  let mine = Array.to_list (Array.sub ends first (beyond - first)) in
  let until = match frame.stopped with
    | limit when List.for_all (fun ended -> Big.gt ended Big.zero) mine ->
      let last = List.fold_left Big.max Big.zero mine in
      Some (match limit with Some limit -> Big.min limit last | None -> last)
    | limit -> limit in
  (match until with
  | Some until ->
    need (Big.leq !latest until) "a copy goes on when the run is over";
    need (Hashtbl.fold (fun ended () fine -> fine && ended = Big.to_string until) cut true) "a copy is cut before the run is over"
  | None -> need (Hashtbl.length cut = 0) "a copy is cut before the run is over");
  Array.map (fun ended -> Big.gt ended Big.zero) ends

let proven_of_copies file rules frame =
  let { header; bound; claim; _ } = file in
  let policy = name "policy" (field header "policy") in
  let length, restart, aggregation, most =
    (whole "round" (field rules "round"), whole "restart" (field rules "restart"),
     whole "aggregation" (field rules "aggregation"), whole ~least:Big.one "most copies" (field rules "most")) in
  need (Big.gt length (Big.add restart aggregation)) "a round is no longer than its charges";
  let none what value = need (Big.equal (whole what value) Big.zero) "copies have other charges" in
  none "start" (field header "start");
  none "migration" (field header "migration");
  List.iter (fun entry -> none "restart" (snd (pair "a restart" entry))) (rows "restarts" (field header "restart"));
  let gangs = List.map (fun entry -> whole ~least:Big.one "gang of a restart" (fst (pair "a restart" entry))) (rows "restarts" (field header "restart")) in
  need (gangs <> [] && increasing Big.lt gangs) "gangs of restarts do not increase";
  List.iter
    (fun each -> need (not (List.mem_assoc each header)) "copies are in whole rounds, and begin again with each")
    ["starts"; "rounds"; "types"];
  let restarting = word header "preemption" "restart" in
  need (file.networks = []) "copies have no network";
  let nodes = frame.its_nodes in
  (* jobs *)
  let ids = Hashtbl.create 1024 in
  let job k fields =
    numbered "job" fields k;
    let id = name "id of a job" (field fields "id") in
    need (not (Hashtbl.mem ids id)) "job %d has the id of another" k;
    Hashtbl.add ids id ();
    (match field fields "run" with
     | Record [] -> ()
     | _ -> raise (Not_covered "run times of copies"));
    List.iter (fun each -> need (not (List.mem_assoc each fields)) "job %d runs as copies and has other speeds" k)
      ["beside"; "graph"; "part"; "sort"; "spread"; "widths"; "work"];
    ignore (whole ~least:Big.one "gang" (field fields "gpus"));
    let rate (on, value) =
      let found = rational "rate" value in
      need (Big.gt found.qnum Big.zero) "a rate is 0";
      match Hashtbl.find_opt frame.its_types on with
      | Some number -> (number, found)
      | None -> reject "job %d has a rate on a type that no node is of" k in
    let rates = match field fields "rate" with
      | Record (_ :: _ as found) -> List.map rate found
      | _ -> reject "job %d has no rates" k in
    let work_steps = whole ~least:Big.one "steps" (field fields "steps") in
    let its_cells = optional fields "profile" (fun value ->
      let number = small "profile" value in
      need (number < Array.length frame.its_profiles) "job %d has a profile that is not there" k;
      frame.its_profiles.(number)) in
    let speeds = match its_cells with Some cells -> List.map (fun cell -> exactly cell.speed) (Array.to_list cells) | None -> [fraction Big.one Big.one] in
    let best = List.fold_left (fun found speed -> if is_less found speed then speed else found) (List.hd speeds) speeds in
    let p, a, theta = least_of_copies nodes most work_steps rates best in
    need ((frame.its_quotas <> []) = List.mem_assoc "quota" fields) "job %d has a quota that is not there, or none" k;
    let its_quota = optional fields "quota" (fun value ->
      let number = small "quota" value in
      need (number < List.length frame.its_quotas) "job %d has a quota that is not there" k;
      number) in
    let fields_of_utility = List.filter (fun field -> List.mem_assoc field fields) ["worth"; "deadline"] in
    need (fields_of_utility = frame.of_utility) "job %d has a worth or a deadline that no utility asks for, or lacks one" k;
    ( { work_steps; its_rates = rates; its_cells; its_quota; p; a },
      { steps_of = work_steps; rates; speeds_of = speeds; theta },
      { arrival = whole "arrival" (field fields "arrival"); gang = Big.one; weight = rational "weight" (field fields "weight");
        times = [((0, 0), p)];
        watched = (match frame.its_window with Some (first, last) -> first <= k && k < last | None -> true);
        worth = Option.value ~default:(fraction Big.zero Big.one) (optional fields "worth" (rational "worth"));
        deadline = optional fields "deadline" (whole "deadline"); quota = None } ) in
  let all = List.mapi job file.jobs in
  let scale = List.fold_left (fun scale ({ p; _ }, _, _) -> Big.lcm scale p) Big.one all in
  if Big.numbits scale > 65_536 then raise (Not_covered "copies of so many jobs of different lengths");
  let jobs = List.map (fun ({ p; a; _ }, _, (job : job)) -> { job with gang = Big.div (Big.mul scale a) p }) all in
  let gpus = Array.fold_left (fun sum (node : node) -> Big.add sum node.gpus) Big.zero nodes in
  let least_work =
    { nodes = [{ gpus = Big.mul scale gpus; gpu_type = 0 }]; jobs;
      charged = { start_charge = Big.zero; migration = Big.zero; restarts = [] }; lost = false; until = frame.stopped;
      per_gpu = scale; saves = None; faults = []; quotas = []; amounts = []; once = false; widest = Big.one; rounds = None;
      least_start = Big.zero } in
  let of_copies =
    { least_work; machines = Array.to_list nodes; copied_jobs = List.map (fun (_, each, _) -> each) all; most_copies = most } in
  let is_counted (job : job) = job.watched && match frame.stopped with Some limit -> Big.lt job.arrival limit | None -> true in
  let counted = List.filter is_counted jobs in
  need (counted <> []) "it was stopped before a job that counts arrived";
  (* copies *)
  let known = Array.of_list (List.map (fun (each, _, _) -> each) all) in
  let every = Array.of_list jobs in
  let copy fields =
    let start = whole "start of a run" (field fields "start") in
    let k = small "job of a run" (field fields "job") in
    need (k < Array.length known) "a run is of a job that there is not";
    let { its_rates; its_cells; _ } = known.(k) in
    need (Big.geq start every.(k).arrival) "job %d starts before it arrives" k;
    need (not (List.mem_assoc "partner" fields)) "job %d has a partner and runs as copies" k;
    if List.mem_assoc "goes_on" fields then raise (Not_covered "copies that go on");
    let on, gpus, row = match rows "pieces" (field fields "pieces"), its_cells with
      | [Row [on; gpus]], None -> (on, gpus, None)
      | [Row [on; gpus; row]], Some cells ->
        let row = small "row of a profile" row in
        need (row < Array.length cells) "a row of a profile is not there";
        (on, gpus, Some row)
      | _ -> reject "a copy is not on one node, or its piece has not its entries" in
    let node = small "node of a run" on and gpus = whole ~least:Big.one "GPUs of a copy" gpus in
    need (node < Array.length nodes && Big.leq gpus nodes.(node).gpus) "a copy is on a node that there is not, or has not so many GPUs";
    let rate = match List.assoc_opt nodes.(node).gpu_type its_rates with
      | Some rate -> times gpus rate
      | None -> reject "job %d cannot run on node %d" k node in
    let rate = match row, its_cells with
      | Some row, Some cells ->
        let cpus, memory = frame.its_thousandths.(node) in
        need (Big.leq (Big.mul gpus cells.(row).cpus) cpus && Big.leq (Big.mul gpus cells.(row).memory) memory)
          "job %d has not the CPUs or memory of its row" k;
        product rate (exactly cells.(row).speed)
      | _ -> rate in
    let its_run =
      { of_job = k; start; stop = whole ~least:(Big.succ start) "end of a run" (field fields "end");
        overhead = whole "overhead" (field fields "overhead"); pieces = [(node, gpus)];
        condition = Option.value ~default:0 row; uses = []; goes_on = false } in
    ({ its_run; its_steps = whole "steps" (field fields "steps") }, whole "copy" (field fields "copy"), rate) in
  let copies = List.map copy file.runs in
  need (increasing (fun ({ its_run = first; _ }, _, _) ({ its_run = second; _ }, _, _) -> Big.leq first.start second.start) copies)
    "runs are not in order of their starts";
  let required k = is_counted every.(k) && frame.stopped = None in
  let complete = check_rounds frame restarting known (length, restart, aggregation, most) copies required in
  let copies_in = List.map (fun (copy, _, _) -> copy) copies in
  (* Of jobs that restart the proof knows that all steps were done, and not in one go. *)
  if restarting && Array.exists2 (<>) complete (Array.init (Array.length known) (all_done of_copies copies_in)) then
    raise (Not_covered "copies of jobs that did their steps and lost them");
  (* bound *)
  let grid = List.map (whole "grid") (rows "grid" (field bound "grid")) in
  let priced = rows "prices" (field bound "prices") in
  let prices row = List.map (whole "price") row in
  let claimed_bound = rational "bound" (field claim "bound") and ratio = rational "ratio" (field claim "ratio") in
  let words =
    [Words "schedules";
     Words (if frame.known_until <> None then " on nodes that fail" else "");
     Words (if frame.its_quotas <> [] then " within quotas of tenants" else "");
     Words (Printf.sprintf " in which a job is at most %s copies on whole nodes" (Big.to_string most));
     Words (if restarting then ", jobs restart when preempted" else "")]
    @ (match frame.its_window with
       | Some (first, last) -> [Words (Printf.sprintf ", counting jobs %d to %d alone" first (last - 1))]
       | None -> [])
    @ (match frame.stopped with
       | Some limit -> [Words ", counting time until "; Seconds limit; Words " s alone"]
       | None -> []) in
  (match field claim "class" with
   | Text written -> need_words written words
   | _ -> reject "the class is no text");
  let unstopped kind = need (frame.stopped = None) "%s is no bound of what was stopped" kind in
  let proven = match frame.utility_round with
    | Some copy_round ->
      need (field bound "bound" = Text "round-prices") "the bound is unknown, or of whole gangs";
      need (grid = []) "prices by round take no grid";
      let copy_prices = match priced with [Row row] -> prices row | _ -> reject "there are no prices of one row" in
      check_copy_utility
        { utility_copies = of_copies; utility_copies_in = copies_in; copy_round; copy_prices;
          copy_unit = rational "unit of prices" (field bound "unit");
          copy_earned = rational "utility earned" (field claim "earned"); copy_most = claimed_bound; copy_multiple = ratio }
    | None ->
      let copy_objective = match field header "objective" with
        | Text "completion" -> Completion
        | Text "flow" -> Flow
        | Text "makespan" -> Makespan
        | _ -> reject "the objective is unknown" in
      let copy_multipliers = match field bound "bound" with
        | Text "interval-lp" ->
          let latest = List.fold_left (fun latest (job : job) -> Big.max latest job.arrival) Big.zero counted in
          let last = List.fold_left (fun sum (job : job) -> Big.add sum (snd (List.hd job.times))) latest counted in
          need (grid <> [] && Big.geq (List.nth grid (List.length grid - 1)) last) "the grid ends too early";
          IntervalPrices (grid, prices priced)
        | Text "job" -> need (grid = [] && priced = []) "job takes no prices"; unstopped "job"; Alone
        | Text "fluid" ->
          need (grid = [] && priced = []) "fluid takes no prices";
          let first = (List.hd counted).weight in
          need (List.for_all (fun (job : job) -> job.weight = first) counted) "fluid: weights differ";
          OneMachine
        | Text "mean-busy-time" ->
          need (grid = [] && priced = []) "mean-busy-time takes no prices";
          unstopped "mean-busy-time";
          if List.length counted > 5_000 then raise (Not_covered "mean-busy-time of so many jobs");
          BusyTimes
        | Text "area" -> need (grid = [] && priced = []) "area takes no prices"; unstopped "area"; Area false
        | Text "wide-gangs" -> reject "wide-gangs: jobs run as copies"
        | Text kind -> raise (Not_covered ("the bound " ^ kind ^ " of copies"))
        | _ -> reject "the bound is unknown" in
      need (match copy_multipliers with Area _ -> copy_objective = Makespan | _ -> copy_objective <> Makespan)
        "the bound is none of the objective";
      check_copies
        { of_copies; copies_in; copy_objective; copy_multipliers; copy_cost = rational "cost" (field claim "cost");
          copy_bound = claimed_bound; copy_ratio = ratio } in
  need proven "the claim is not proven";
  let { qnum; qden } = ratio in
  let by_utility = frame.utility_round <> None in
  Printf.sprintf "%s%s %s %s/%s times %s" policy (if by_utility then ":" else "")
    (if by_utility then "any schedule of its instance earns at most" else "costs at most")
    (Big.to_string qnum) (Big.to_string qden) (if by_utility then "what it does" else "any schedule of its instance")

(* ---- certificate --------------------------------------------------------------------------------- *)

(* What is proven of the file, in words. *)
let proven_of file =
  let { header; bound; claim; _ } = file in
  need (file.jobs <> [] && file.nodes <> []) "there are no jobs or no nodes";
  let policy = name "policy" (field header "policy") in
  let restarting = word header "preemption" "restart" and once = word header "starts" "once" in
  let ample = word header "types" "ample" and consolidated = word header "placement" "consolidated" in
  (* nodes *)
  let types = Hashtbl.create 8 in
  let type_number written =
    match Hashtbl.find_opt types written with
    | Some number -> number
    | None -> let number = Hashtbl.length types in Hashtbl.add types written number; number in
  let node k fields =
    numbered "node" fields k;
    { gpus = whole ~least:Big.one "GPUs of a node" (field fields "gpus");
      gpu_type = type_number (name "type of a node" (field fields "type")) } in
  let nodes = Array.of_list (List.mapi node file.nodes) in
  let thousandths = Array.of_list (List.map (fun fields ->
    let amount name = Option.value ~default:Big.zero (optional fields name (whole name)) in
    (amount "cpus", amount "memory")) file.nodes) in
  let cores = Option.value ~default:(-1) (Hashtbl.find_opt types "cores") in
  let sizes on_cores =
    Array.to_list nodes |> List.filter (fun node -> (node.gpu_type = cores) = on_cores)
    |> List.map (fun node -> node.gpus) |> List.sort (fun a b -> Big.compare b a) in
  let sizes_of_cores = sizes true and sizes_of_gpus = sizes false in
  (* rules *)
  let saves, known = match file.checkpoints with
    | [] -> (None, None)
    | [fields] ->
      need (not once) "nodes fail, after which jobs begin again";
      let least = if restarting || file.all_copies <> [] then Big.pow (Big.of_int 2) 60 else Big.one in
      let rule = { between = whole ~least "interval of checkpoints" (field fields "interval");
                   writing = whole "cost of a checkpoint" (field fields "cost") } in
      (Some rule, Some (whole "time until which faults are known" (field fields "until")))
    | _ -> reject "there are several rules of checkpoints" in
  need (file.faults = [] || saves <> None) "nodes fail, and nothing says what is saved";
  let last_down = Hashtbl.create 8 in
  let fault fields =
    let node = small "node of a fault" (field fields "node") and down = whole "fault" (field fields "down") in
    let up = whole ~least:(Big.succ down) "end of a fault" (field fields "up") in
    need (node < Array.length nodes) "a node fails that there is not";
    need (match Hashtbl.find_opt last_down node with Some before -> Big.leq before down | None -> true)
      "faults of a node are out of order";
    Hashtbl.replace last_down node down;
    ((node, down), up) in
  let faults = List.map fault file.faults in
  let quota k fields =
    numbered "quota" fields k;
    let periods =
      List.map
        (fun period ->
           let start, most = pair "a period" period in
           (whole "start of a period" start, whole "GPUs of a quota" most))
        (rows "periods" (field fields "periods")) in
    need (match periods with (start, _) :: _ -> Big.equal start Big.zero | [] -> false) "a quota does not begin at 0";
    need (increasing (fun (a, _) (b, _) -> Big.lt a b) periods) "periods of a quota are out of order";
    periods in
  let quotas = List.mapi quota file.quotas in
  let profiles = Array.of_list (List.mapi profile_of file.profiles) in
  let all_widths = Array.of_list (List.mapi widths_of file.widths) in
  let network = match file.networks with
    | [] -> None
    | [fields] -> Some (network_of fields)
    | _ -> reject "there are several networks" in
  need (file.all_graphs = [] || network <> None) "there are graphs and no network";
  let all_graphs = Array.of_list (List.mapi graph_of_record file.all_graphs) in
  let until = optional header "stopped" (whole "time at which it was stopped") in
  let window = optional header "window" (fun value ->
    let first, last = pair "window" value in
    let first = small "job of the window" first and last = small "job of the window" last in
    need (first < last && last <= List.length file.jobs) "the window has no jobs, or such that there are not";
    (first, last)) in
  (* utilities *)
  let by_utility = field header "objective" = Text "utility" in
  let of_utility = match by_utility, List.assoc_opt "utility" header with
    | false, None -> []
    | true, Some (Text ("effective_throughput" | "completion_time" | "fairness")) -> ["worth"]
    | true, Some (Text "deadline") -> ["worth"; "deadline"]
    | _ -> reject "a utility is no objective, or unknown" in
  let round = optional header "round" (whole ~least:Big.one "round of utilities") in
  need ((round <> None) = by_utility) "a round is of no utility, or lacks";
  let whole_rounds = word header "rounds" "whole" in
  need (by_utility || not whole_rounds) "rounds are of no utility";
  need (List.mem_assoc "earned" claim = by_utility && List.mem_assoc "cost" claim <> by_utility
        && List.mem_assoc "unit" bound = (by_utility || field bound "bound" = Text "completion-windows"))
    "the claim or the bound is of what the objective is not";
  let is_bound kinds = List.exists (fun kind -> field bound "bound" = Text kind) kinds in
  let fine name kinds = need (List.mem_assoc name bound = is_bound kinds) "the field %s of the bound lacks, or is of other bounds" name in
  fine "least" ["list-schedules"];
  fine "jobs" ["completion-windows"];
  fine "rows" of_nodes;
  need (file.parts = [] || is_bound ["completion-windows"]) "parts are of windows of completions, and there are none";
  match file.all_copies with
  | [rules] ->
    need (not consolidated) "copies are on whole nodes, and never consolidated";
    proven_of_copies file rules
      { of_header = header; its_nodes = nodes; its_types = types; its_thousandths = thousandths; known_until = known;
        its_faults = faults; its_quotas = quotas; its_profiles = profiles; stopped = until; its_window = window; of_utility;
        utility_round = round }
  | _ :: _ :: _ -> reject "there are several rules of copies"
  | [] ->
  (* jobs *)
  let shares = ref false in
  let has_parts = List.exists (List.mem_assoc "part") file.jobs in
  let per_gpu = if has_parts then whole_gpu else Big.one in
  let units gpus = Big.mul gpus per_gpu in
  let ids = Hashtbl.create 1024 in
  let job k fields =
    numbered "job" fields k;
    let id = name "id of a job" (field fields "id") in
    need (not (Hashtbl.mem ids id)) "job %d has the id of another" k;
    Hashtbl.add ids id ();
    need (not (List.mem_assoc "steps" fields || List.mem_assoc "rate" fields)) "job %d has rates of copies, and there are none" k;
    need (List.mem_assoc "graph" fields = List.mem_assoc "work" fields) "job %d has a graph or work without the other" k;
    let has_graph = List.mem_assoc "graph" fields in
    let plain = match field fields "run" with
      | Record [] when has_graph -> []
      | Record [] -> reject "job %d can run nowhere" k
      | Record times ->
        List.map
          (fun (on, ticks) ->
             match Hashtbl.find_opt types on with
             | Some number -> (number, whole ~least:Big.one "run time" ticks)
             | None -> reject "job %d has a run time on a type that no node is of" k)
          times
      | _ -> reject "run times of job %d are no record" k in
    let gpus = whole ~least:Big.one "gang" (field fields "gpus") in
    let part = optional fields "part" (fun value ->
      let part = whole ~least:Big.one "part" value in
      need (Big.equal gpus Big.one && Big.lt part whole_gpu && not (List.mem_assoc "spread" fields))
        "job %d holds a part of something else than a GPU" k;
      part) in
    let cells = optional fields "profile" (fun value ->
      let number = small "profile" value in
      need (number < Array.length profiles) "job %d has a profile that is not there" k;
      profiles.(number)) in
    let spread = optional fields "spread" (fun value ->
      let speed = double "speed of a job" value in
      need (speed > 0.0 && speed <= 1.0) "job %d is faster when spread" k;
      speed) in
    let on_cores = match plain with [(only, _)] -> only = cores | _ -> false in
    let speeds = optional fields "widths" (fun value ->
      let number = small "widths" value in
      need (number < Array.length all_widths) "job %d has widths that are not there" k;
      need (part = None) "job %d holds a part of something else than a GPU" k;
      all_widths.(number)) in
    need (List.mem_assoc "sort" fields = List.mem_assoc "beside" fields) "job %d has a sort or speeds beside others, and not both" k;
    let sort = optional fields "sort" (whole "sort") in
    let faster = ref [] in
    let beside = match List.assoc_opt "beside" fields with
      | None -> []
      | Some (Record by_type) ->
        List.map
          (fun (on, row) ->
             let on = match Hashtbl.find_opt types on with
               | Some number -> number
               | None -> reject "job %d shares GPUs of no node" k in
             let partner (sort, ticks) =
               let number = try Big.of_string sort with Invalid_argument _ -> reject "job %d runs beside no sort" k in
               need (Big.to_string number = sort) "job %d runs beside no sort" k;
               shares := true;
               if has_graph then begin
                 let speed = double "speed of a job beside another" ticks in
                 need (speed > 0.0) "job %d has no speed beside another" k;
                 faster := (on, (whole "sort" (Whole number), speed)) :: !faster;
                 (number, Big.one)
               end
               else begin
                 let ticks = whole ~least:Big.one "run time" ticks in
                 need (Big.leq ticks longest_exact) "a run time is no double up to 2^53";
                 (whole "sort" (Whole number), ticks)
               end in
             match row with
             | Record row -> (on, List.map partner row)
             | _ -> reject "job %d has no speeds beside sorts" k)
          by_type
      | Some _ -> reject "job %d has no speeds beside others" k in
    need (part = None || beside = []) "job %d holds a part of something else than a GPU" k;
    let mapped = optional fields "graph" (fun value ->
      let number = small "graph" value in
      need (number < Array.length all_graphs) "job %d has a graph that is not there" k;
      need (plain = [] && spread = None && speeds = None) "job %d has a graph and other speeds" k;
      let its_graph, its_gpus = all_graphs.(number) in
      if part <> None || has_parts then raise (Not_covered "graphs beside parts of GPUs");
      if not (Big.equal its_gpus gpus) then raise (Not_covered "a graph of other GPUs than its job's");
      let of_type (on, _) = (on, List.filter_map (fun (other, each) -> if other = on then Some each else None) (List.rev !faster)) in
      { its_graph; its_gpus; its_work = double "work" (field fields "work"); its_beside = List.map of_type beside }) in
    let rules = { cells; spread; speeds; part; on_cores; gpus_of_gang = small "gang" (Whole gpus); sort; beside; plain; mapped } in
    if cells <> None || spread <> None || speeds <> None || sort <> None then
      List.iter (fun (_, ticks) -> need (Big.leq ticks longest_exact) "a run time is no double up to 2^53") plain;
    let conditions = if has_graph then [] else conditions_of rules in
    let in_condition number condition =
      List.filter_map (fun (on, _) -> Option.map (fun ticks -> ((on, number), ticks)) (ticks_in rules condition on)) plain in
    let times = List.concat (List.mapi in_condition conditions) in
    let numbers = Hashtbl.create 8 in
    List.iteri (fun number condition -> Hashtbl.replace numbers condition number) conditions;
    need ((quotas <> [] && not on_cores) = List.mem_assoc "quota" fields) "job %d has a quota that is not there, or none" k;
    let fields_of_utility = List.filter (fun field -> List.mem_assoc field fields) ["worth"; "deadline"] in
    need (fields_of_utility = of_utility) "job %d has a worth or a deadline that no utility asks for, or lacks one" k;
    let worth = Option.value ~default:(fraction Big.zero Big.one) (optional fields "worth" (rational "worth")) in
    let deadline = optional fields "deadline" (whole "deadline") in
    let quota = optional fields "quota" (fun value ->
      let number = small "quota" value in
      need (number < List.length quotas) "job %d has a quota that is not there" k;
      number) in
    ( (rules, numbers),
      { arrival = whole "arrival" (field fields "arrival");
        gang = (match part with Some part -> part | None -> units gpus);
        weight = rational "weight" (field fields "weight"); times;
        watched = (match window with Some (first, last) -> first <= k && k < last | None -> true);
        worth; deadline; quota } ) in
  let jobs = List.mapi job file.jobs in
  let rules_of = Array.of_list (List.map fst jobs) and jobs = List.map snd jobs in
  let mapped = Array.exists (fun (rules, _) -> rules.mapped <> None) rules_of in
  let shares = !shares in
  let may_share = List.exists (List.mem_assoc "beside") file.jobs in
  let may_grow = List.exists (List.mem_assoc "widths") file.jobs in
  if quotas <> [] && may_share then raise (Not_covered "quotas of jobs that share GPUs");
  let is_counted job = job.watched && match until with Some limit -> Big.lt job.arrival limit | None -> true in
  let counted = List.filter is_counted jobs in
  let numbers_counted =
    Array.of_list (List.concat (List.mapi (fun k job -> if is_counted job then [k] else []) jobs)) in
  need (counted <> []) "it was stopped before a job that counts arrived";
  let whole_gangs = List.for_all (fun job -> Big.divisible job.gang per_gpu) counted in
  (* runs *)
  let last_of = Hashtbl.create 1024 in
  let held_parts = ref [] in
  let ways = Array.map (fun _ -> ref []) rules_of in
  let way_number k way =
    let rec find number = function
      | [] -> ways.(k) := !(ways.(k)) @ [way]; number
      | first :: rest -> if first = way then number else find (number + 1) rest in
    find 0 !(ways.(k)) in
  let waiting = Hashtbl.create 8 and latest_start = ref None in
  let nobody_waits () = need (Hashtbl.length waiting = 0) "a job does not share what its partner holds" in
  let run fields =
    need (not (List.mem_assoc "copy" fields || List.mem_assoc "steps" fields)) "a run is a copy, and jobs have none";
    let start = whole "start of a run" (field fields "start") in
    let k = small "job of a run" (field fields "job") in
    need (k < Array.length rules_of) "a run is of a job that there is not";
    let ({ cells; spread; part; on_cores; _ } as rules), numbers = rules_of.(k) in
    let stop = whole ~least:(Big.succ start) "end of a run" (field fields "end") in
    let mapping = ref [] in
    let piece value = match value, rules.mapped with
      | Row entries, Some _ when List.length entries > 2 ->
        let rec split before = function
          | [last] ->
            mapping := List.map (whole "replicas") (rows "replicas" last) :: !mapping;
            Row (List.rev before)
          | first :: rest -> split (first :: before) rest
          | [] -> value in
        split [] entries
      | _, Some _ -> reject "a piece has not its entries"
      | _, None -> value in
    let piece value = match piece value, part, cells with
      | Row [on; gpus], None, None -> (on, gpus, None, None)
      | Row [on; gpus; number], Some _, None -> (on, gpus, Some number, None)
      | Row [on; gpus; row], None, Some _ -> (on, gpus, None, Some row)
      | Row [on; gpus; number; row], Some _, Some _ -> (on, gpus, Some number, Some row)
      | _ -> reject "a piece has not its entries" in
    let piece value =
      let on, gpus, number, row = piece value in
      let on = small "node of a run" on in
      need (on < Array.length nodes) "a run is on a node that there is not";
      let gpus = whole ~least:Big.one "GPUs of a run" gpus in
      (on, gpus, Option.map (small "GPU") number, Option.map (small "row of a profile") row) in
    let found = List.map piece (rows "pieces" (field fields "pieces")) in
    need (increasing (fun (a, _, _, _) (b, _, _, _) -> a < b) found) "nodes of a run are out of order";
    let amount gpus = match part with Some part -> Big.mul gpus part | None -> units gpus in
    let pieces = List.map (fun (on, gpus, _, _) -> (on, amount gpus)) found in
    (* Whoever of two holds a GPU, it counts once. *)
    if !latest_start <> Some start then (nobody_waits (); latest_start := Some start);
    let partner = optional fields "partner" (small "partner") in
    let second = match partner with
      | None -> false
      | Some other ->
        need (other <> k && other < Array.length rules_of) "job %d has a partner that there is not" k;
        need (rules.sort <> None) "job %d has a partner, and no speed beside one" k;
        let here = (start, stop, pieces) in
        (match Hashtbl.find_opt waiting (other, k) with
         | Some there ->
           need (there = here) "jobs %d and %d do not hold the same" k other;
           Hashtbl.remove waiting (other, k);
           true
         | None -> Hashtbl.replace waiting (k, other) here; false) in
    let partner_sort = match partner with
      | None -> None
      | Some other ->
        let theirs, _ = rules_of.(other) in
        need (theirs.gpus_of_gang = rules.gpus_of_gang) "job %d is beside another gang" k;
        let able one other (on, _) =
          (one.mapped <> None || List.mem_assoc nodes.(on).gpu_type one.plain)
          && (match List.assoc_opt nodes.(on).gpu_type one.beside, other.sort with
              | Some row, Some sort -> List.exists (fun (found, _) -> Big.equal found sort) row
              | _ -> false) in
        need (List.for_all (able rules theirs) pieces && List.for_all (able theirs rules) pieces)
          "jobs %d and %d cannot share these GPUs" k other;
        theirs.sort in
    if has_parts && not second then
      List.iter
        (fun (on, gpus, number, _) ->
           let number, held = match number, part with
             | Some number, Some part ->
               need (Big.lt (Big.of_int number) nodes.(on).gpus) "a run is on a GPU that there is not";
               (number, Big.to_int part)
             | _ -> need (Big.leq gpus nodes.(on).gpus) "a node has not so many GPUs"; (-1, Big.to_int gpus) in
           held_parts := (on, (start, true, number, held)) :: (on, (stop, false, number, held)) :: !held_parts)
        found;
    let thousandths gpus = match part with Some part -> part | None -> Big.mul gpus whole_gpu in
    let uses, slowest = match cells with
      | None -> ([], 0)
      | Some cells ->
        let each (on, gpus, _, row) =
          let row = Option.get row in
          need (row < Array.length cells) "a row of a profile is not there";
          let gpus = thousandths gpus in
          ([(2 * on, Big.mul gpus cells.(row).cpus); (2 * on + 1, Big.mul gpus cells.(row).memory)], row) in
        let every = List.map each found in
        let slower_row best (_, row) = if best < 0 || cells.(row).speed < cells.(best).speed then row else best in
        (List.concat_map fst every, max 0 (List.fold_left slower_row (-1) every)) in
    let node_use = 2 * Array.length nodes in
    let uses =
      if shares && not has_parts && not second then List.map (fun (on, gpus) -> (node_use + on, gpus)) pieces @ uses
      else uses in
    let width = List.fold_left (fun sum (_, gpus, _, _) -> Big.add sum gpus) Big.zero found in
    let more_than_need_be = List.length found > fewest (if on_cores then sizes_of_cores else sizes_of_gpus) width in
    need (not (consolidated && more_than_need_be)) "a run of job %d is on more nodes than need be" k;
    let apart = spread <> None && more_than_need_be in
    let wider = Big.to_int width - rules.gpus_of_gang in
    need (0 <= wider && wider < (match rules.speeds with Some speeds -> Array.length speeds | None -> 1))
      "a run of job %d holds %s GPUs, not its gang" k (Big.to_string width);
    let changes = partner <> None || profiles <> [||] in
    let may_go_on = match Hashtbl.find_opt last_of k with
      | Some (ended, held, changed) -> Big.equal ended start && held = pieces && (changes || changed)
      | None -> false in
    Hashtbl.replace last_of k (stop, pieces, changes);
    let goes_on = match List.assoc_opt "goes_on" fields with
      | None -> may_go_on
      | Some (Flag said) -> need (may_go_on || not said) "a run goes on that cannot"; said
      | Some _ -> reject "goes_on is neither true nor false" in
    if goes_on && saves <> None then raise (Not_covered "checkpoints of runs that go on");
    need (match known with Some known -> Big.lt stop known | None -> true) "a run goes on when nobody knows which nodes are down";
    let condition = match rules.mapped with
      | None -> Hashtbl.find numbers { partner_sort; row = slowest; apart; wider }
      | Some { its_beside; _ } ->
        let beside = match partner_sort with
          | None -> 1.0
          | Some sort ->
            List.fold_left
              (fun least (on, _) -> Float.min least (List.assoc sort (List.assoc nodes.(on).gpu_type its_beside)))
              Float.infinity pieces in
        let fed = match cells with Some cells -> cells.(slowest).speed | None -> 1.0 in
        way_number k (List.rev !mapping, exactly (1.0 *. beside *. fed)) in
    { of_job = k; start; stop; overhead = whole "overhead" (field fields "overhead"); pieces; condition; uses; goes_on } in
  let runs = List.map run file.runs in
  nobody_waits ();
  need (increasing (fun first second -> Big.leq first.start second.start) runs) "runs are not in order of their starts";
  check_parts nodes !held_parts;
  if quotas <> [] && List.length runs > 20_000 then raise (Not_covered "quotas of so many runs");
  (* charges, objective and bound *)
  let charge entry =
    let gang, ticks = pair "a restart" entry in
    (units (whole ~least:Big.one "gang of a restart" gang), whole "restart" ticks) in
  let restarts = List.map charge (rows "restarts" (field header "restart")) in
  need (restarts <> [] && increasing (fun (a, _) (b, _) -> Big.lt a b) restarts) "gangs of restarts do not increase";
  let charged =
    { start_charge = whole "start" (field header "start");
      migration = whole "migration" (field header "migration"); restarts } in
  let least_start = if shares then Big.zero else charged.start_charge in
  let mapped_of { mapped; cells; _ } = match mapped with
    | None -> None
    | Some { its_graph; its_work; its_beside; _ } ->
      let rows = match cells with Some cells -> Array.to_list cells |> List.map (fun cell -> cell.speed) | None -> [1.0] in
      let besides = 1.0 :: List.concat_map (fun (_, row) -> List.map snd row) its_beside in
      let speeds = List.concat_map (fun beside -> List.map (fun fed -> exactly (1.0 *. beside *. fed)) rows) besides in
      Some ((its_graph, exactly its_work), List.sort_uniq compare speeds) in
  let placing =
    Option.map
      (fun over_network ->
         { over_network; sizes = Array.to_list (Array.map (fun (node : node) -> node.gpus) nodes);
           graphs = Array.to_list (Array.map (fun (rules, _) -> mapped_of rules) rules_of) })
      (if mapped then network else None) in
  let ways_used =
    Array.to_list (Array.map (fun ways -> if !ways = [] then [([], fraction Big.one Big.one)] else !ways) ways) in
  let least_ticks k (job : job) = match placing with
    | Some placing ->
      (match least_ticks_of placing (k, job) with Some ticks -> ticks | None -> reject "job %d can run nowhere" k)
    | None -> List.fold_left (fun least (_, t) -> Big.min least t) (snd (List.hd job.times)) job.times in
  let grid = List.map (whole "grid") (rows "grid" (field bound "grid")) in
  let priced = rows "prices" (field bound "prices") in
  let prices () = List.map (whole "price") priced in
  let unstopped kind = need (until = None) "%s is no bound of what was stopped" kind in
  let objective () = match field header "objective" with
    | Text "completion" -> Completion
    | Text "flow" -> Flow
    | Text "makespan" -> Makespan
    | _ -> reject "the objective is unknown" in
  let multipliers objective =
    let found = match field bound "bound" with
      | Text "interval-lp" ->
        (* Further than any schedule that does not wait for nothing; the proof does without. *)
        let latest = List.fold_left (fun latest job -> Big.max latest job.arrival) Big.zero counted in
        let longest sum (k, job) = Big.add sum (Big.add (least_ticks k job) least_start) in
        let all = List.fold_left longest latest (List.filter (fun (_, job) -> is_counted job) (List.mapi (fun k job -> (k, job)) jobs)) in
        need (grid <> [] && Big.geq (List.nth grid (List.length grid - 1)) all) "the grid ends too early";
        IntervalPrices (grid, prices ())
      | Text "priced-plans" -> PlanPrices (grid, prices ())
      | Text "job" -> need (grid = [] && priced = []) "job takes no prices"; unstopped "job"; Alone
      | Text "area" -> need (grid = [] && priced = []) "area takes no prices"; unstopped "area"; Area (whole_gangs && not shares)
      | Text "fluid" ->
        need (grid = [] && priced = []) "fluid takes no prices";
        let first = (List.hd counted).weight in
        need (List.for_all (fun job -> job.weight = first) counted) "fluid: weights differ";
        OneMachine
      | Text (("mean-busy-time" | "wide-gangs") as kind) ->
        need (grid = [] && priced = []) "%s takes no prices" kind;
        unstopped kind;
        if List.length counted > 5_000 then raise (Not_covered (kind ^ " of so many jobs"));
        if kind = "mean-busy-time" then BusyTimes
        else begin
          need (whole_gangs && not shares) "wide-gangs: jobs share GPUs or hold parts of them";
          WideGangs
        end
      | _ -> reject "the bound is unknown" in
    let of_last = match found with Area _ -> true | _ -> false in
    need (of_last = (objective = Makespan)) "the bound is none of the objective";
    found in
  (* Bounds of what MoreClaims.v speaks of; none if it is another. *)
  let more_multipliers objective =
    let kind = match field bound "bound" with Text kind -> kind | _ -> reject "the bound is unknown" in
    let capacity = Array.fold_left (fun all node -> Big.add all (units node.gpus)) Big.zero nodes in
    let of_gangs () =
      unstopped kind;
      if shares then raise (Not_covered (kind ^ " of jobs that share GPUs"));
      need whole_gangs "%s: jobs hold parts of GPUs" kind in
    let all_fit () =
      need (List.for_all (fun job -> Big.leq job.gang capacity) counted) "%s: a gang is of more GPUs than there are" kind in
    let few cells jobs =
      let steps = Big.mul (Big.of_int (cells * jobs)) (Big.succ capacity) in
      if Big.gt steps (Big.of_int 200_000_000) || Big.gt capacity (Big.of_int 20_000) then raise (Not_covered (kind ^ " of so many jobs, cells and GPUs")) in
    let prices_and_own () =
      let of_last = String.starts_with ~prefix:"priced-span" kind in
      need (of_last = (objective = Makespan)) "the bound is none of the objective";
      of_gangs ();
      need (grid = []) "%s takes no prices over time" kind;
      if of_last then
        match List.map (fun row -> List.map (whole "price") (rows "prices" row)) priced with
        | [found; own] ->
          need (List.length own = List.length counted) "there are no prices of each job's own time";
          (found, Some own)
        | _ -> reject "there are no prices of resources and of jobs' time"
      else (List.map (whole ~least:Big.one "price") priced, None) in
    (* Prices of the own time of jobs that count, among all. *)
    let own_times times own =
      let left = ref own in
      List.map
        (fun job ->
           match is_counted job, !left with
           | true, first :: rest -> left := rest; Big.mul times first
           | _ -> Big.zero)
        jobs in
    let of_completions () = need (objective <> Makespan) "the bound is none of the objective" in
    match kind with
    | "list-schedules" ->
      need (once || restarting) "list-schedules: jobs of the class go on where they were stopped";
      of_gangs ();
      all_fit ();
      let prices = prices () in
      need (objective <> Makespan || (grid = [] && prices = [])) "list-schedules: takes no prices for the last end";
      need ((grid = [] && prices = []) || (List.length grid = List.length prices + 1 && increasing Big.lt grid)) "the grid does not increase";
      Some (ByLists (grid, prices, rational "least cost of lists" (field bound "least")))
    | "configurations" ->
      of_completions ();
      of_gangs ();
      let widths = List.sort_uniq Big.compare (List.map (fun job -> job.gang) counted) in
      let found = List.map (fun row -> List.map (whole "price") (rows "prices" row)) priced in
      need (List.length found = List.length widths) "there are no prices for all gangs";
      need (increasing Big.lt grid && List.for_all (fun row -> List.length grid = List.length row + 1) found) "the grid does not increase";
      few (List.length grid) (List.length counted);
      Some (ByConfigurations (grid, List.combine widths found))
    | "completion-windows" ->
      of_completions ();
      of_gangs ();
      all_fit ();
      need (grid = [] && priced = []) "completion-windows takes no prices";
      let those = List.map (small "job of the windows") (rows "jobs" (field bound "jobs")) in
      need (those <> [] && increasing (<) those && List.for_all (fun j -> j < List.length counted) those)
        "windows are of jobs that there are not";
      need (List.length those <= 12) "completion-windows: of more jobs than 12";
      let unit0 = rational "unit of prices" (field bound "unit") in
      need (Big.gt unit0.qnum Big.zero) "prices have no unit";
      let fine, parts = tree_of those file.parts in
      let rec cells = function Cut (_, _, a, b) -> cells a + cells b | Leaf (grid, _) -> List.length grid in
      few (cells parts) (List.length those);
      Some (ByWindows (fine, unit0, List.map (Array.get numbers_counted) those, parts))
    | _ when List.mem kind of_nodes ->
      let found, own = prices_and_own () in
      need (all_widths = [||]) "nodes: jobs may grow";
      if has_parts then raise (Not_covered "nodes of which parts of GPUs are held");
      let gangs = List.sort_uniq Big.compare (List.map (fun job -> job.gang) counted) in
      let node_type value =
        let number = small "type of a row" value in
        need (number < Hashtbl.length types) "a row is of no nodes";
        number in
      let row = function
        | Row [on; size; used; of_one] ->
          let row_type = node_type on and row_size = whole "nodes of a row" size in
          let mine = List.filter (fun node -> node.gpu_type = row_type) (Array.to_list nodes) in
          need (List.exists (fun node -> Big.equal node.gpus row_size) mine) "a row is of no nodes";
          let fit = List.filter (fun gang -> Big.leq gang row_size) gangs in
          let used = List.map (whole "use of a node") (rows "use of a node" used) in
          need (List.length used = List.length fit) "a row is not of the gangs that fit";
          let row_gpu = whole "use of a node" of_one in
          need (Big.equal row_gpu Big.zero || List.for_all (fun node -> Big.equal node.gpus row_size) mine)
            "nodes of a type are of several sizes, and a gang across them uses one";
          if Big.gt row_size (Big.of_int 4096) then raise (Not_covered "nodes of so many GPUs");
          { row_type; row_size; row_gangs = List.combine fit used; row_gpu; row_price = Big.zero }
        | _ -> reject "a row has not its entries" in
      let node_rows = List.map row (rows "rows" (field bound "rows")) in
      let number = Hashtbl.length types in
      need (List.length found = number + List.length node_rows) "there are no prices for all resources";
      let million = Big.of_int 1048576 in
      let of_types = List.filteri (fun k _ -> k < number) found |> List.map (Big.mul million) in
      let node_rows = List.mapi (fun k row -> { row with row_price = List.nth found (number + k) }) node_rows in
      let table =
        List.map
          (fun (({ on_cores; gpus_of_gang; spread; _ } as rules), numbers) ->
             let fits = fewest (if on_cores then sizes_of_cores else sizes_of_gpus) (Big.of_int gpus_of_gang) = 1 in
             let apart = List.filter (fun condition -> condition.apart) (conditions_of rules) in
             (fits, if spread = None then [] else List.map (Hashtbl.find numbers) apart))
          (Array.to_list rules_of) in
      Some (ByNodes (table, consolidated, of_types, node_rows, Option.map (own_times million) own))
    | _ when List.mem kind of_modes ->
      let of_amounts = String.ends_with ~suffix:"amounts" kind in
      need (not of_amounts || all_widths <> [||] || profiles <> [||]) "amounts: no job may grow or has a profile";
      let found, own = prices_and_own () in
      (* What modes ask for, but those that others are as good as. *)
      let points (rules, _) =
        let each condition =
          let cell = match rules.cells with Some cells -> cells.(condition.row) | None -> { cpus = Big.zero; memory = Big.zero; speed = 1.0 } in
          let width = rules.gpus_of_gang + condition.wider in
          let times amount = Big.mul (Big.of_int width) amount in
          (-. speed_in rules condition, width, times cell.cpus, times cell.memory) in
        let all = List.map each (List.filter (fun condition -> not condition.apart) (conditions_of rules)) in
        let as_good (_, w, c, m) (_, w', c', m') = w <= w' && Big.leq c c' && Big.leq m m' in
        List.fold_left (fun best point -> if List.exists (fun other -> as_good other point) best then best else point :: best) []
          (List.sort compare all) in
      let of_counted = List.map (Array.get rules_of) (Array.to_list numbers_counted) in
      let asked amount =
        of_amounts && List.exists (fun rules -> List.exists (fun point -> Big.gt (amount point) Big.zero) (points rules)) of_counted in
      let number = Hashtbl.length types in
      let asks_cpus = asked (fun (_, _, c, _) -> c) and asks_memory = asked (fun (_, _, _, m) -> m) in
      let count = number + Bool.to_int asks_cpus + Bool.to_int asks_memory in
      need (List.length found = count) "there are no prices for %d resources" count;
      (* CPUs and memory are in thousandths of thousandths. *)
      let million = Big.mul whole_gpu whole_gpu in
      let of_types = List.filteri (fun k _ -> k < number) found |> List.map (fun x -> Big.divexact (Big.mul x million) per_gpu) in
      let of_cpus = if asks_cpus then List.nth found number else Big.zero in
      let of_memory = if asks_memory then List.nth found (count - 1) else Big.zero in
      let a_unit = Big.divexact whole_gpu per_gpu in
      let row (rules, numbers) job =
        List.filter_map
          (fun condition ->
             if condition.partner_sort <> None then None
             else
               let cpus, memory = match rules.cells with
                 | Some cells -> (Big.mul a_unit cells.(condition.row).cpus, Big.mul a_unit cells.(condition.row).memory)
                 | None -> (Big.zero, Big.zero) in
               let wider = units (Big.of_int condition.wider) in
               Some (Hashtbl.find numbers condition, (Big.add job.gang wider, (cpus, memory))))
          (conditions_of rules) in
      let table = List.map2 row (Array.to_list rules_of) jobs in
      Some (ByModes (table, { of_types; of_cpus; of_memory }, Option.map (own_times million) own))
    | _ -> None in
  let prices_of_rounds () =
    need (grid = []) "prices by round take no grid";
    let found = List.map (fun row -> List.map (whole "price") (rows "prices" row)) priced in
    let by_type = match field bound "bound" with
      | Text "round-prices" -> false
      | Text ("typed-round-prices" | "whole-round-prices") ->
        need (not mapped && whole_gangs && not shares && file.widths = []) "prices by type: jobs share GPUs, may grow or hold parts";
        true
      | _ -> reject "the bound is unknown" in
    need (List.length found = if by_type then Hashtbl.length types else 1) "there are no prices for all types";
    let length = List.length (List.hd found) in
    need (List.for_all (fun row -> List.length row = length) found) "there are not as many prices in all rows";
    (by_type, found) in
  (* the class *)
  let words =
    [Words (if once then "non-preemptive schedules" else "preemptive schedules");
     Words (if saves <> None then " on nodes that fail" else "");
     Words (if quotas <> [] then " within quotas of tenants" else "");
     Words (match may_share, has_parts with
       | true, true -> " in which at most two jobs share a GPU or no more than all of it is held in parts"
       | true, false -> " in which at most two jobs share a GPU"
       | false, true -> " in which no GPU is held by more than all of it"
       | false, false -> " in which no two jobs share a GPU");
     Words (if may_grow then " and gangs may grow" else "");
     Words (if ample then ", no gang uses a GPU type with fewer GPUs than it" else "")]
    @ (if Big.equal least_start Big.zero then [] else [Words ", a start takes "; Seconds least_start; Words " s"])
    @ [Words (if restarting && not once then ", jobs restart when preempted" else "")]
    @ (match window with
       | Some (first, last) -> [Words (Printf.sprintf ", counting jobs %d to %d alone" first (last - 1))]
       | None -> [])
    @ (match until with
       | Some limit -> [Words ", counting time until "; Seconds limit; Words " s alone"]
       | None -> [])
    @ [Words (if consolidated then ", on as few nodes as gangs fit on" else "")]
    @ (match round with
       | Some length when whole_rounds -> [Words ", in whole rounds of "; Seconds length; Words " s"]
       | _ -> []) in
  (match field claim "class" with
   | Text written -> need_words written words
   | _ -> reject "the class is no text");
  let amounts =
    List.concat_map
      (fun (cpus, memory) ->
         if profiles = [||] then [Big.zero; Big.zero] else [Big.mul cpus whole_gpu; Big.mul memory whole_gpu])
      (Array.to_list thousandths)
    @ List.map (fun node -> units node.gpus) (Array.to_list nodes) in
  (* Two may share a GPU: which are no more than there are is one of the amounts. *)
  let often = if shares then Big.of_int 2 else Big.one in
  let nodes = List.map (fun node -> { node with gpus = Big.mul often (units node.gpus) }) (Array.to_list nodes) in
  let widest = match Array.to_list rules_of with
    | _ when not may_grow -> Big.one
    | every ->
      let most (rules, _) = match rules.speeds with Some speeds -> Array.length speeds | None -> 1 in
      Big.of_int (List.fold_left (fun widest each -> max widest (most each)) 1 every) in
  let instance =
    { nodes; jobs; charged; lost = restarting; until; per_gpu; saves; faults; quotas; amounts; once; widest;
      rounds = (if whole_rounds then round else None); least_start } in
  let claimed_bound = rational "bound" (field claim "bound") and ratio = rational "ratio" (field claim "ratio") in
  let proven = match round with
    | Some round_length ->
      let by_type, rows = prices_of_rounds () in
      let in_whole_rounds = field bound "bound" = Text "whole-round-prices" in
      need (whole_rounds || not in_whole_rounds) "whole-round-prices: the schedule is not in whole rounds";
      let certificate =
        { utility_instance = instance; utility_schedule = runs; round_length; by_type; rows;
          unit0 = rational "unit of prices" (field bound "unit");
          claimed_earned = rational "utility earned" (field claim "earned");
          claimed_most = claimed_bound; claimed_multiple = ratio } in
      (match placing with
       | None -> (if in_whole_rounds then check_whole_rounds else check_utility) certificate
       | Some _ when in_whole_rounds -> raise (Not_covered "this bound of job graphs")
       | Some utility_placing -> check_graph_utility { utility_placing; utility_ways = ways_used; utility_claim = certificate })
    | None ->
      let objective = objective () in
      let claimed_cost = rational "cost" (field claim "cost") in
      match more_multipliers objective with
      | Some more_by ->
        (* The instance lists mappings of runs alone, and the class has all. *)
        if placing <> None then raise (Not_covered "this bound of job graphs");
        let more =
          { more_instance = instance; more_schedule = runs; more_objective = objective; more_by;
            more_cost = claimed_cost; more_bound = claimed_bound; more_ratio = ratio } in
        check_more more
        || (if beyond_proof more then
              raise (Not_covered (match more_by with ByLists _ -> "so many lists" | _ -> "windows that end when all is over"))
            else false)
      | None ->
        let certificate =
          { of_instance = instance; of_schedule = runs; of_objective = objective; by_multipliers = multipliers objective;
            claimed_cost; claimed_bound; claimed_ratio = ratio } in
        (match placing with
         | None -> check certificate
         | Some placing -> check_graphs { placing; ways_used; claim_of = certificate }) in
  (* What is proven of jobs that share GPUs or may grow is less than there may be to say. *)
  if not proven && (shares || may_grow) then raise (Not_covered "this bound of jobs that share GPUs or may grow");
  need proven "the claim is not proven";
  let { qnum; qden } = ratio in
  let said = if by_utility then "any schedule of its instance earns at most" else "costs at most" in
  let of_whom = if by_utility then "what it does" else "any schedule of its instance" in
  Printf.sprintf "%s%s %s %s/%s times %s" policy (if by_utility then ":" else "") said
    (Big.to_string qnum) (Big.to_string qden) of_whom

let contents path =
  let file = open_in_bin path in
  Fun.protect ~finally:(fun () -> close_in file) (fun () -> really_input_string file (in_channel_length file))

(* 0: proven, 1: rejected, 2: not covered. *)
let verdict path =
  try
    let sentence = proven_of (read (contents path)) in
    Printf.printf "%s: proven: %s\n" path sentence;
    0
  with
  | Rejected message | Sys_error message -> Printf.printf "%s: rejected: %s\n" path message; 1
  | Not_covered what -> Printf.printf "%s: not covered by the proof: %s\n" path what; 2
  | Stack_overflow | Out_of_memory -> Printf.printf "%s: rejected: too large for this program\n" path; 1

let () =
  match Array.to_list Sys.argv with
  | _ :: (_ :: _ as paths) -> exit (List.fold_left (fun worst path -> max worst (verdict path)) 0 paths)
  | _ -> prerr_endline "usage: proven-checker CERTIFICATE ..."; exit 64
