# Keeps the servers of one environment for the process that holds the other end
# of our standard input, and takes them down when that end closes: by a proper
# stop as well as by the death of the holder, whatever killed it.
#
# Argument: the environment's folder. For each part there is a script
# <part>.sh in it that becomes the server. Orders come line by line:
#   start PART       says the process id
#   kill PART        as a power cut would; says "stopped"
#   terminate PART   the polite way; says "stopped"
set -u
folder=$1
exec 2>>"$folder/keeper.log"

end_all() {
    for file in "$folder"/*.pid; do
        # Killed, not asked: nothing here has to be kept, and a frozen server
        # would not hear it.
        [ -e "$file" ] && kill -KILL "$(cat "$file")"
    done
    wait
    rm -rf "$folder"
}
trap end_all EXIT
trap 'exit 1' HUP INT TERM

end_one() {
    if [ -e "$folder/$2.pid" ]; then
        pid=$(cat "$folder/$2.pid")
        kill "-$1" "$pid"
        wait "$pid"
        rm -f "$folder/$2.pid"
    fi
    echo stopped
}

while read -r order part; do
    case $order in
    start)
        sh "$folder/$part.sh" </dev/null >>"$folder/$part.log" 2>&1 &
        echo $! >"$folder/$part.pid"
        echo $!
        ;;
    kill) end_one KILL "$part" ;;
    terminate) end_one TERM "$part" ;;
    esac
done
