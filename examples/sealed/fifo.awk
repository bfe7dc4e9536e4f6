# First come, first served, as a command that speaks to the engine in lines of JSON:
#     awk -W interactive -f fifo.awk        (mawk; gawk needs no option)
/"message":"hello"/ { say("{\"name\":\"fifo-awk\",\"version\":1}"); next }
/"message":"begin"/ { head = tail = 0; next }
{
    match($0, /"free_gpus":[0-9]+/)
    free = substr($0, RSTART + 12, RLENGTH - 12) + 0
    rest = $0
    while (match(rest, /{"job":[0-9]+,"id":"[^"]*","gpus":[0-9]+/)) {
        job = gpus = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        sub(/{"job":/, "", job)
        sub(/.*"gpus":/, "", gpus)
        queue[tail] = job + 0
        gang[tail++] = gpus + 0
    }
    starts = ""
    while (head < tail && gang[head] <= free) {
        free -= gang[head]
        starts = starts (starts == "" ? "" : ",") "{\"job\":" queue[head++] "}"
    }
    say("{\"start\":[" starts "]}")
}
function say(text) { print text; fflush() }
