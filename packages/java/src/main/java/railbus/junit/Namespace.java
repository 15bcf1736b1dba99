package railbus.junit;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.UUID;
import java.util.regex.Pattern;

/** A namespace of a broker: entities, messages, keys and fault rules of its own. */
public final class Namespace implements AutoCloseable {
    private static final Pattern CONNECTION_STRING = Pattern.compile("\"connection-string\"\\s*:\\s*\"([^\"]+)\"");
    private static final Pattern KEY = Pattern.compile("SharedAccessKeyName=([^;]+);SharedAccessKey=([^;]+)");

    private final String address;
    private final String name;
    private final String connectionString;

    private Namespace(String address, String name, String connectionString) {
        this.address = address;
        this.name = name;
        this.connectionString = connectionString;
    }

    /**
     * Makes a namespace of the broker at an address, with the entities of its default namespace and no messages.
     *
     * @throws IllegalArgumentException if the broker refuses it, or it exists already
     */
    public static Namespace create(String address, String name) {
        var answer = Api.request(address, "PUT", path(name), "{\"like\": \"default\"}");
        var found = CONNECTION_STRING.matcher(answer);
        if (!found.find()) {
            throw new IllegalArgumentException("the namespace " + name + " exists already");
        }
        return new Namespace(address, name, found.group(1));
    }

    /** Makes a namespace with a random name. */
    public static Namespace create(String address) {
        return create(address, "test-" + UUID.randomUUID());
    }

    /** Its name. */
    public String name() {
        return name;
    }

    /** What the Azure SDKs take. */
    public String connectionString() {
        return connectionString;
    }

    /** Takes away all messages and fault rules, and makes the entities anew that the namespace was made with. */
    public void reset() {
        request("POST", "/reset", "");
    }

    /** Keeps the entities and messages as they are now, under a name of lower-case letters, digits and -. */
    public void snapshot(String name) {
        request("POST", "/snapshots", "{\"name\": \"" + name + "\"}");
    }

    /** Goes back to what was kept, as often as is wanted. Locks are void then, and links are detached. */
    public void restore(String name) {
        request("POST", "/restore", "{\"snapshot\": \"" + name + "\"}");
    }

    /** Lets time pass in this namespace alone. What becomes due has happened when it returns. */
    public void advance(Duration duration) {
        request("POST", "/clock", "{\"advance\": \"" + duration + "\"}");
    }

    /** Adds a fault rule, in JSON: {@code {"name": "busy", "match": {...}, "effect": {...}}}. */
    public void fault(String rule) {
        request("POST", "/faults", rule);
    }

    /** The fault rules in JSON, each with how many operations it has {@code matched} and how many failed by it. */
    public String faults() {
        return request("GET", "/faults", "");
    }

    /** Takes all fault rules away. */
    public void clearFaults() {
        request("DELETE", "/faults", "");
    }

    /** Why messages of an entity are not delivered, in JSON. */
    public String explain(String entity) {
        var key = KEY.matcher(connectionString);
        if (!key.find()) {
            throw new IllegalStateException("the connection string has no key");
        }
        // The name of the key chooses the namespace.
        var credentials = (key.group(1) + ":" + key.group(2)).getBytes(StandardCharsets.UTF_8);
        var authorization = "Basic " + Base64.getEncoder().encodeToString(credentials);
        var path = encoded(entity).replace("%2F", "/");
        return Api.request(address, "GET", "entities/" + path + "/explain", "", "Authorization", authorization);
    }

    /** Deletes the namespace with all that is in it, and closes its connections. */
    @Override
    public void close() {
        request("DELETE", "", "");
    }

    private String request(String method, String path, String body) {
        return Api.request(address, method, path(name) + path, body);
    }

    private static String path(String name) {
        return "namespaces/" + encoded(name);
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }
}
