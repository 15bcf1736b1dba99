package railbus.junit;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.stream.Stream;

/** Where the program {@code railbus} is. */
final class Program {
    private Program() {}

    /** The program that RAILBUS_BIN names, that of the jar of this platform, or the one on PATH. */
    static Path find() throws IOException {
        var named = System.getenv("RAILBUS_BIN");
        if (named != null && !named.isEmpty()) {
            return Path.of(named);
        }
        var inJar = "/railbus/program/" + platform() + "/railbus";
        try (var checksum = Program.class.getResourceAsStream(inJar + ".sha256")) {
            if (checksum != null) {
                return unpack(inJar, new String(checksum.readAllBytes(), StandardCharsets.UTF_8).strip());
            }
        }
        var folders = System.getenv().getOrDefault("PATH", "").split(File.pathSeparator);
        var found = Stream.of(folders).map(folder -> Path.of(folder, "railbus")).filter(Files::isExecutable).findFirst();
        return found.orElseThrow(() -> new FileNotFoundException(
                "the program railbus is missing: add railbus-junit with the classifier " + platform()
                        + ", put the program on PATH, or name it in RAILBUS_BIN"));
    }

    /** A processor and system as the classifiers of the jars name them, such as {@code linux-x64}. */
    static String platform() {
        var system = System.getProperty("os.name").toLowerCase().startsWith("mac") ? "darwin" : "linux";
        var processor = System.getProperty("os.arch").equals("aarch64") ? "arm64" : "x64";
        return system + "-" + processor;
    }

    /** Writes the program to the user's cache, once for each of its versions. */
    private static Path unpack(String resource, String checksum) throws IOException {
        var cache = System.getenv("XDG_CACHE_HOME");
        var home = cache == null || cache.isEmpty() ? Path.of(System.getProperty("user.home"), ".cache") : Path.of(cache);
        var folder = Files.createDirectories(home.resolve("railbus").resolve("program").resolve(checksum));
        var program = folder.resolve("railbus");
        if (Files.isExecutable(program)) {
            return program;
        }
        var whole = Files.createTempFile(folder, "railbus", ".part");
        try (InputStream bytes = Program.class.getResourceAsStream(resource)) {
            Files.copy(bytes, whole, StandardCopyOption.REPLACE_EXISTING);
        }
        if (!whole.toFile().setExecutable(true)) {
            throw new IOException(whole + " cannot be made executable");
        }
        // Several test processes may do this at once; each finds a whole program.
        return Files.move(whole, program, StandardCopyOption.ATOMIC_MOVE);
    }
}
