# Makes a certificate authority for the brokers that tests start, whose folder is in OWN_BROKER_TLS, and beside its PEM
# `$work/own.pem` the file `$work/trusted.pem`, which has that of the suite's broker too. For clients that settle what they
# trust when they start. To be sourced by a `run` that has RAILBUS_BIN, and ends without `exec`.
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export OWN_BROKER_TLS="$work/tls"
"$RAILBUS_BIN" ca export --tls-dir "$OWN_BROKER_TLS" --out "$work/own.pem"
cat ${RAILBUS_CA:+"$RAILBUS_CA"} "$work/own.pem" >"$work/trusted.pem"
