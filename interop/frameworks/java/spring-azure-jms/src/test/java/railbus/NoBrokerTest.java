package railbus;

import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.springframework.boot.builder.SpringApplicationBuilder;

/** A connection string that is none. `setup` runs it, since it needs no broker. */
class NoBrokerTest {
    @Test
    void anApplicationDoesNotStartWithoutAKey() {
        SpringApplicationBuilder application = new SpringApplicationBuilder(Application.class)
                .properties(
                        "spring.jms.servicebus.connection-string=Endpoint=sb://localhost",
                        "spring.jms.servicebus.pricing-tier=premium",
                        "logging.level.root=OFF",
                        "spring.main.banner-mode=off");
        assertThrows(Exception.class, application::run);
    }
}
