#!/usr/bin/env bash
# The end-to-end check of the compose file: two users' clients against the running server, through the network.
set -euo pipefail
server="$1"
app="compose-check-$RANDOM$RANDOM"
fail() { echo "FAILED: $*"; exit 1; }

thicketd app create "$app" --data /data >/dev/null
token=$(thicketd token create --app "$app" --user two@example.com --data /data)
reader=$(thicketd token create --app "$app" --user two@example.com --read-only --data /data)
echo "token made for $app"

export HOME=/tmp/first
mkdir -p $HOME
THICKET_TOKEN="$token" thicket login --server "$server" --app "$app"
thicket put notes plan '{"title":"Oak","text":"one"}'
echo "first client wrote"

export HOME=/tmp/second
mkdir -p $HOME
THICKET_TOKEN="$token" thicket login --server "$server" --app "$app"
[ "$(thicket get notes plan --path title)" = Oak ] || fail "the second client does not read what the first wrote"
thicket put notes plan '{"title":"Oak","text":"two"}'
echo "second client read and wrote"

export HOME=/tmp/first
[ "$(thicket get notes plan --path text)" = two ] || fail "the first client does not see the second's edit"
thicket history notes plan | grep -q . || fail "no history"

export HOME=/tmp/third
mkdir -p $HOME
THICKET_TOKEN="$reader" thicket login --server "$server" --app "$app"
[ "$(thicket get notes plan --path text)" = two ] || fail "the read-only client does not read"
if thicket put notes plan '{"title":"Elm"}' 2>/tmp/refusal; then fail "a read-only token wrote"; fi
echo "read-only token refused: $(head -n 1 /tmp/refusal)"

cat >/tmp/trace.json <<'EOT'
{"kind":"concurrent","numAgents":2,"endContent":"Hello, big world","txns":[
 {"agent":0,"parents":[],"patches":[[0,0,"Hello world"]]},
 {"agent":0,"parents":[0],"patches":[[5,0,","]]},
 {"agent":1,"parents":[0],"patches":[[6,0,"big "]]}]}
EOT
THICKET_TOKEN="$token" thicket replay --server "$server" --app "$app" /tmp/trace.json | tail -n 1 | grep -q MATCH \
    || fail "two clients typing at once do not end in the recorded text"
echo "two clients typed at once and ended alike"

# A tree: two machines of one account with keys, a content of several parts, and nothing readable at the server.
key=$(thicketd app key add "$app" --data /data | head -n 1 | awk '{print $NF}')
login="--server $server --app $app --api-key $key --user tree-$RANDOM"
export THICKET_PASSWORD="sesame-$RANDOM"
mkdir -p /tmp/recipes && echo canary-soup >/tmp/recipes/canary-recipe.md && head -c 12M /dev/urandom >/tmp/recipes/video
export HOME=/tmp/desk
mkdir -p $HOME
# shellcheck disable=SC2086
thicket signup $login >/dev/null
thicket tree put -r /tmp/recipes recipes
export HOME=/tmp/laptop
mkdir -p $HOME
# shellcheck disable=SC2086
thicket login $login >/dev/null
[ "$(thicket tree cat recipes/canary-recipe.md)" = canary-soup ] || fail "the other machine reads another recipe"
thicket tree get recipes/video /tmp/video && cmp /tmp/video /tmp/recipes/video || fail "the video is another one"
thicket tree mv recipes/video film
export HOME=/tmp/desk
thicket tree ls | grep -qx film || fail "the first machine does not see the move"
if grep -raq "canary-\(soup\|recipe\)" /data; then fail "the server has a clear name or content"; fi
unset THICKET_PASSWORD
echo "two machines have one tree, and the server reads none of it"

# The image has the SockJS client for pages in frames (docs/SOCKJS.md).
address=${server#http://}
for path in iframe.html sockjs.min.js; do
    exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
    printf 'GET /sock/1/%s/%s HTTP/1.0\r\nhost: server\r\n\r\n' "$app" "$path" >&3
    answer=$(cat <&3)
    exec 3>&-
    case "$answer" in "HTTP/1.1 200"*) ;; *) fail "$path: ${answer%%$'\r'*}" ;; esac
done
echo "the page for frames has its library"

thicketd check --data /data
echo "compose check passed"
