# A schedule for a library instance of rigid gangs whose GPUs are all alike: first come, first served, each job begins
# once, on the GPUs that are free first. Run it on the tables that `shadowprice library get NAME` writes:
#
#   awk -v name=NAME -f first_come.awk NAME.nodes.csv NAME.jobs.csv > schedule.csv
BEGIN { FS = ","; gpus = 0; print "# instance: " name; print "job,node,gpus,start_s,end_s" }
FNR == 1 { for (k = 1; k <= NF; k++) column[$k] = k; table++; next }
table == 1 { for (k = 0; k < $column["gpus"]; k++) { at[gpus] = $column["node"]; free_s[gpus++] = 0 }; next }
{
    begin_s = $column["arrival_s"]; gang = $column["gpus"]
    split("", chosen); split("", here)
    for (k = 0; k < gang; k++) {
        first = -1
        for (g = 0; g < gpus; g++)
            if (!(g in chosen) && (first < 0 || free_s[g] < free_s[first])) first = g
        chosen[first]; here[at[first]]++
        if (free_s[first] > begin_s) begin_s = free_s[first]
    }
    end_s = begin_s + $column["work"]
    for (g in chosen) free_s[g] = end_s
    for (n in here) printf "%d,%d,%d,%.0f,%.0f\n", $column["job"], n, here[n], begin_s, end_s
}
