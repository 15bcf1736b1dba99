package railbus;

import java.util.Map;
import java.util.TreeMap;

/** The properties of the application, as its `application.properties` would have them. */
final class Settings {
    static final String QUEUE = "frameworks-stream";
    static final String SESSIONS = "frameworks-stream-sessions";
    static final String TOPIC = "frameworks-stream-events";

    private Settings() {}

    static Map<String, Object> of(String connectionString) {
        Map<String, Object> all = new TreeMap<>();
        all.put("logging.level.root", "OFF");
        all.put("spring.main.banner-mode", "off");
        all.put("spring.cloud.azure.servicebus.connection-string", connectionString);
        all.put("spring.cloud.function.definition", "orders;dead;events;deadEvents;sessions");
        // What fails is abandoned, or dead-lettered by the binder with the failure as its reason.
        receive(all, "orders", QUEUE, null, "requeue-rejected=false");
        receive(all, "dead", QUEUE + "/$DeadLetterQueue", null, "requeue-rejected=false");
        receive(all, "events", TOPIC, "all", "requeue-rejected=true");
        receive(all, "deadEvents", TOPIC, "all/$DeadLetterQueue", "requeue-rejected=false");
        receive(all, "sessions", SESSIONS, null, "session-enabled=true");
        all.put("spring.cloud.stream.output-bindings", "send;sendSession;publish");
        send(all, "send", QUEUE, "queue");
        send(all, "sendSession", SESSIONS, "queue");
        send(all, "publish", TOPIC, "topic");
        return all;
    }

    /** A function that is given the messages of a queue, or of a topic's subscription, once each. */
    private static void receive(
            Map<String, Object> all, String function, String destination, String subscription, String setting) {
        String binding = "spring.cloud.stream.bindings." + function + "-in-0.";
        all.put(binding + "destination", destination);
        if (subscription != null) {
            all.put(binding + "group", subscription);
        }
        all.put(binding + "consumer.max-attempts", "1");
        String[] named = setting.split("=");
        all.put("spring.cloud.stream.servicebus.bindings." + function + "-in-0.consumer." + named[0], named[1]);
    }

    private static void send(Map<String, Object> all, String name, String destination, String kind) {
        all.put("spring.cloud.stream.bindings." + name + "-out-0.destination", destination);
        String producer = "spring.cloud.stream.servicebus.bindings." + name + "-out-0.producer.";
        all.put(producer + "entity-type", kind);
        // A send waits for its acceptance, so messages arrive in the order of their sends.
        all.put(producer + "sync", "true");
    }
}
