package railbus;

import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.springframework.boot.builder.SpringApplicationBuilder;

/** A connection string that is none. `setup` runs it, since it needs no broker. */
class NoBrokerTest {
    @Test
    void anApplicationDoesNotStartWithoutAKey() {
        SpringApplicationBuilder application = new SpringApplicationBuilder(Application.class)
                .properties(Settings.of("Endpoint=sb://localhost"));
        assertThrows(Exception.class, application::run);
    }
}
