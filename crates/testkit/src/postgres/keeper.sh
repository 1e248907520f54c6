# Keeps one PostgreSQL server for the process that holds the other end of our
# standard input, and takes it down when that end closes: by a proper stop as
# well as by the death of the holder, whatever killed it.
#
# Arguments: the server's folder, the folder of PostgreSQL's programs, then
# lines for postgresql.conf. Says "ready" or "failed" after each start.
set -u
folder=$1
programs=$2
shift 2
exec 2>>"$folder/log"

take_down() {
    "$programs/pg_ctl" -D "$folder/data" -m immediate -w stop >>"$folder/log"
    rm -rf "$folder"
}
trap take_down EXIT
trap 'exit 1' HUP INT TERM

initialize() {
    "$programs/initdb" -D "$folder/data" -A trust -U postgres --no-sync \
        --encoding=UTF8 --locale=C "$@" </dev/null >>"$folder/log"
}

# A collation that is not byte order, so that a query which forgot COLLATE "C"
# shows in tests. Before version 15, or built without ICU, it is byte order.
if ! initialize --locale-provider=icu --icu-locale=en-US; then
    rm -rf "$folder/data"
    initialize || { echo failed; read -r _; exit 1; }
fi
printf '%s\n' "$@" >>"$folder/data/postgresql.conf"
start() {
    if "$programs/pg_ctl" -D "$folder/data" -l "$folder/log" -w -t 60 start >>"$folder/log"; then
        echo ready
    else
        echo failed
    fi
}
start
# Until the other end is closed: a crash of the server, and its next start.
while read -r order; do
    case $order in
    crash)
        "$programs/pg_ctl" -D "$folder/data" -m immediate -w stop >>"$folder/log"
        echo stopped
        ;;
    start) start ;;
    esac
done
