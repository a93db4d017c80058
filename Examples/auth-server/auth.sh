#!/bin/sh
# A partner's two tokens with openssl and curl:
#   auth.sh register USER              registers the user and prints the entity id: keep it beside the user
#   auth.sh login USER ENTITY DEVICE   prints a login token
# Settings: THICKET_URL, PARTNER_API_KEY, PARTNER_AUTH_KEY_FILE, TOKEN_SECONDS (900). Secrets are never arguments.
set -eu
case "$*" in *[\"\\]*) echo "quotes and backslashes are for a program with a JSON library" >&2; exit 2 ;; esac

# The auth key as text, filled up to 128 bytes, each XORed with $1; then HMAC-SHA-512 of the standard input (RFC 2104).
pad() {
    { tr -d '\n' <"$PARTNER_AUTH_KEY_FILE"; head -c 128 /dev/zero; } | head -c 128 | od -An -v -tu1 | tr -s ' ' '\n' |
        sed '/^$/d' | while read -r byte; do printf "\\$(printf %o $((byte ^ $1)))"; done
}
hmac() { { pad 92; { pad 54; cat; } | openssl dgst -sha512 -binary; } | openssl dgst -sha512 -binary; }
base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
sign() {
    text="$(printf %s "$1" | base64url).$(printf '{"exp":%d,%s}' $(($(date +%s) + ${TOKEN_SECONDS:-900})) "$2" | base64url)"
    printf '%s.%s\n' "$text" "$(printf %s "$text" | hmac | base64url)"
}

case "$1" in
register)
    token=$(sign '{"alg":"HS512","typ":"JWT"}' "\"rezolve_entity_id\":\":NONE:\",\"partner_entity_id\":\"$2\"")
    printf 'Authorization: Bearer %s\n' "$token" |
        curl -fsS -H @- -H "x-rezolve-partner-apikey: $PARTNER_API_KEY" -H 'Content-Type: application/json' \
            -d "{\"email\":\"$2\"}" "$THICKET_URL/api/v1/authentication/register" |
        sed -n 's/.*"entity_id":"\([^"]*\)".*/\1/p' ;;
login)
    sign '{"alg":"HS512","auth":"v2","typ":"JWT"}' \
        "\"rezolve_entity_id\":\"$3\",\"partner_entity_id\":\"$2\",\"device_id\":\"$4\"" ;;
*) sed -n '2,5s/^# //p' "$0" >&2; exit 2 ;;
esac
