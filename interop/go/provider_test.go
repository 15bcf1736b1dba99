package interop

// A provider of OpenID Connect, written for these tests: it serves a discovery document and a JWK set on loopback, and
// signs tokens. Programs get them by a credential, as the SDK asks for it.

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/golang-jwt/jwt/v5"
)

const audience = "api://orders"

type claims = map[string]any

// key is a pair of keys, whose public half goes into a JWK set.
type key struct {
	name    string
	method  jwt.SigningMethod
	private crypto.PrivateKey
	public  claims
}

func encoded(number []byte) string { return base64.RawURLEncoding.EncodeToString(number) }

func rsaKey(t *testing.T, name string) key {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	exponent := big.NewInt(int64(private.E)).Bytes()
	public := claims{"kty": "RSA", "kid": name, "use": "sig", "alg": "RS256",
		"n": encoded(private.N.Bytes()), "e": encoded(exponent)}
	return key{name, jwt.SigningMethodRS256, private, public}
}

func ellipticKey(t *testing.T, name string) key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	// One byte that says how the point is written, and both numbers.
	point, err := private.PublicKey.Bytes()
	must(t, err)
	public := claims{"kty": "EC", "kid": name, "use": "sig", "alg": "ES256", "crv": "P-256",
		"x": encoded(point[1:33]), "y": encoded(point[33:])}
	return key{name, jwt.SigningMethodES256, private, public}
}

func (k key) sign(all claims) (string, error) {
	token := jwt.NewWithClaims(k.method, jwt.MapClaims(all))
	token.Header["kid"] = k.name
	return token.SignedString(k.private)
}

func keySet(keys ...key) claims {
	var public []claims
	for _, one := range keys {
		public = append(public, one.public)
	}
	return claims{"keys": public}
}

// credential is what the SDK asks for tokens: each is made anew, from the claims of a user or a program.
type credential struct {
	issuer string
	claims claims
	sign   func(claims) (string, error)
}

func (c credential) GetToken(_ context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	switch scope := options.Scopes[0]; scope {
	case "https://servicebus.azure.net/.default", "https://servicebus.azure.net//.default":
	default:
		return azcore.AccessToken{}, fmt.Errorf("a token for %s", scope)
	}
	expires := time.Now().Add(time.Hour)
	all := claims{"iss": c.issuer, "aud": audience, "exp": expires.Unix()}
	maps.Copy(all, c.claims)
	token, err := c.sign(all)
	return azcore.AccessToken{Token: token, ExpiresOn: expires}, err
}

// unsigned is a token that says of itself that it needs no signature.
func unsigned(all claims) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims(all))
	return token.SignedString(jwt.UnsafeAllowNoneSignatureType)
}

func opaque(claims) (string, error) { return "an-opaque-token", nil }

// provider serves the public halves of an RSA and an elliptic key, and signs with them.
type provider struct {
	issuer string
	keys   map[string]key
}

func startProvider(t *testing.T) provider {
	t.Helper()
	keys := map[string]key{"RS256": rsaKey(t, "first"), "ES256": ellipticKey(t, "second")}
	routes := http.NewServeMux()
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	issuer := server.URL + "/tenant"
	for path, document := range map[string]claims{
		"/tenant/.well-known/openid-configuration": {"issuer": issuer, "jwks_uri": issuer + "/keys"},
		"/tenant/keys": keySet(keys["RS256"], keys["ES256"]),
	} {
		routes.HandleFunc("GET "+path, func(answer http.ResponseWriter, _ *http.Request) {
			answer.Header().Set("content-type", "application/json")
			_ = json.NewEncoder(answer).Encode(document)
		})
	}
	return provider{issuer, keys}
}

// credential is that of a user or a program with these claims.
func (p provider) credential(algorithm string, of claims) credential {
	return credential{p.issuer, of, p.keys[algorithm].sign}
}
