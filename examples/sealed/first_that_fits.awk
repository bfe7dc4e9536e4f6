# First come, first served, passing over gangs that do not fit: a policy of 20 lines that speaks JSON lines.
#
#   shadowprice score --command 'awk -W interactive -f examples/sealed/first_that_fits.awk'    (mawk; gawk needs no -W)

/"message":"hello"/ { answer("{\"name\":\"first-that-fits\"}"); next }
/"message":"begin"/ { split("", waits); last = -1; next }
{
    rest = $0
    if (match(rest, /"started":\[(\[[0-9]+,\[(\[[0-9]+,[0-9]+\],?)+\]\],?)+\]/)) {
        started = substr(rest, RSTART, RLENGTH)
        while (match(started, /\[[0-9]+,\[\[/)) {
            delete waits[substr(started, RSTART + 1, RLENGTH - 4) + 0]
            started = substr(started, RSTART + RLENGTH)
        }
    }
    while (match(rest, /("event":"failed","job":|\{"job":)[0-9]+(\}|,"id":)/)) {
        split(substr(rest, RSTART, RLENGTH), word, /[^0-9]+/)
        waits[job = word[2] + 0] = 1
        if (job > last) last = job
        rest = substr(rest, RSTART + RLENGTH)
    }
    starts = ""
    for (job = 0; job <= last; job++) if (job in waits) starts = starts ",{\"job\":" job "}"
    answer("{\"start\":[" substr(starts, 2) "]}")
}

function answer(text) { print text; fflush() }
