package railbus;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.credential.AccessToken;
import com.azure.core.credential.TokenCredential;
import com.azure.core.credential.TokenRequestContext;
import com.azure.core.util.BinaryData;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.security.interfaces.RSAPublicKey;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import reactor.core.publisher.Mono;

/**
 * A provider of OpenID Connect, written for these tests: it serves a discovery document and a JWK set on loopback, and
 * signs with an RSA and an elliptic key. Programs get its tokens by an ordinary credential.
 */
final class Provider implements AutoCloseable {
    static final String AUDIENCE = "api://orders";
    private static final List<String> SCOPES =
        List.of("https://servicebus.azure.net/.default", "https://servicebus.azure.net//.default");

    final String issuer;
    final Map<String, Key> keys = Map.of("RS256", Key.rsa("first"), "ES256", Key.elliptic("second"));
    private final HttpServer server;

    Provider() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        issuer = "http://127.0.0.1:" + server.getAddress().getPort() + "/tenant";
        serve("/.well-known/openid-configuration", json(Map.of("issuer", issuer, "jwks_uri", issuer + "/keys")));
        serve("/keys", keySet(keys.values().toArray(Key[]::new)));
        server.start();
    }

    private void serve(String path, String document) {
        byte[] body = document.getBytes(StandardCharsets.UTF_8);
        server.createContext("/tenant" + path, exchange -> {
            exchange.getResponseHeaders().set("content-type", "application/json");
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
    }

    /** Of a program or a user with these claims. */
    Credential credential(Map<String, Object> claims) {
        return credential("RS256", claims);
    }

    Credential credential(String algorithm, Map<String, Object> claims) {
        return new Credential(keys.get(algorithm)::token, issuer, claims);
    }

    @Override
    public void close() {
        server.stop(0);
    }

    private static String json(Map<String, ?> document) {
        return BinaryData.fromObject(document).toString();
    }

    private static String encoded(byte[] bytes) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }

    static String keySet(Key... keys) {
        return json(Map.of("keys", Stream.of(keys).map(Key::published).toList()));
    }

    /** These claims, with another one in its place or beside them. */
    static Map<String, Object> but(Map<String, Object> claims, String claim, Object value) {
        Map<String, Object> all = new HashMap<>(claims);
        all.put(claim, value);
        return all;
    }

    /** A token that says of itself that it needs no signature. */
    static String unsigned(String claims) {
        return encoded("{\"alg\": \"none\"}".getBytes()) + "." + encoded(claims.getBytes()) + ".";
    }

    /** A pair of keys; what is published of it goes into a JWK set. */
    record Key(String name, String algorithm, KeyPair pair, Map<String, String> published) {
        static Key rsa(String name) {
            KeyPair pair = pair("RSA", 2048);
            RSAPublicKey numbers = (RSAPublicKey) pair.getPublic();
            return new Key(name, "RS256", pair, Map.of("kty", "RSA", "kid", name, "use", "sig", "alg", "RS256",
                "n", number(numbers.getModulus(), 256), "e", number(numbers.getPublicExponent(), 3)));
        }

        static Key elliptic(String name) {
            KeyPair pair = pair("EC", 256);
            ECPublicKey numbers = (ECPublicKey) pair.getPublic();
            return new Key(name, "ES256", pair, Map.of("kty", "EC", "kid", name, "use", "sig", "alg", "ES256",
                "crv", "P-256", "x", number(numbers.getW().getAffineX(), 32),
                "y", number(numbers.getW().getAffineY(), 32)));
        }

        private static KeyPair pair(String kind, int bits) {
            try {
                KeyPairGenerator generator = KeyPairGenerator.getInstance(kind);
                generator.initialize(bits);
                return generator.generateKeyPair();
            } catch (GeneralSecurityException failure) {
                throw new IllegalStateException(failure);
            }
        }

        /** In this many bytes, whatever Java has before them. */
        private static String number(BigInteger value, int length) {
            byte[] bytes = value.toByteArray();
            byte[] exact = new byte[length];
            int count = Math.min(bytes.length, length);
            System.arraycopy(bytes, bytes.length - count, exact, length - count, count);
            return encoded(exact);
        }

        String token(String claims) {
            String head = json(Map.of("alg", algorithm, "kid", name));
            String text = encoded(head.getBytes()) + "." + encoded(claims.getBytes());
            try {
                boolean rsa = algorithm.equals("RS256");
                Signature signature = Signature.getInstance(rsa ? "SHA256withRSA" : "SHA256withECDSAinP1363Format");
                signature.initSign(pair.getPrivate());
                signature.update(text.getBytes());
                return text + "." + encoded(signature.sign());
            } catch (GeneralSecurityException failure) {
                throw new IllegalStateException(failure);
            }
        }
    }

    /** What the SDK asks for tokens: each is made anew, from the claims of a user or a program. */
    record Credential(UnaryOperator<String> token, String issuer, Map<String, Object> claims)
        implements TokenCredential {
        @Override
        public Mono<AccessToken> getToken(TokenRequestContext asked) {
            String scope = asked.getScopes().get(0);
            assertTrue(SCOPES.contains(scope), scope);
            OffsetDateTime expires = OffsetDateTime.now().plusHours(1);
            Map<String, Object> all = new HashMap<>(Map.of("iss", issuer, "aud", AUDIENCE, "exp", expires.toEpochSecond()));
            all.putAll(claims);
            return Mono.just(new AccessToken(token.apply(json(all)), expires));
        }
    }
}
