import Glibc
import Synchronization

/// Makes test servers speak TLS, so that tests written without it run a second time over TLS.
public enum SecureEdge {
    /// Servers that are started in this task speak TLS.
    @TaskLocal public static var isOn = false

    private static let ports = Mutex<Set<Int>>([])

    /// From now on clients of tests speak TLS to this port of this machine.
    public static func add(port: Int) { ports.withLock { _ = $0.insert(port) } }
    /// A port may be given to a server without TLS later.
    public static func remove(port: Int) { ports.withLock { _ = $0.remove(port) } }
    public static func isSecure(port: Int) -> Bool { ports.withLock { $0.contains(port) } }

    public static let hasOpenSSL: Bool = access(program, X_OK) == 0
    public static let program = "/usr/bin/openssl"

    /// A certificate for `localhost` and 127.0.0.1 with its key, as PEM files: made once per process, removed with it.
    public static let files: (certificate: String, key: String) = {
        let folder = "/tmp/thicket-tls-\(getpid())"
        mkdir(folder, 0o700)
        let made: (certificate: String, key: String) = ("\(folder)/certificate.pem", "\(folder)/key.pem")
        make(certificate: made.certificate, key: made.key)
        atexit { SecureEdge.removeFiles() }
        return made
    }()

    private static func removeFiles() {
        let folder = "/tmp/thicket-tls-\(getpid())"
        for name in ["certificate.pem", "key.pem"] { unlink("\(folder)/\(name)") }
        rmdir(folder)
    }

    /// Makes a key and a self-signed certificate for it.
    /// - Parameter kind: of the key: words of `openssl req` behind `-newkey`.
    public static func make(
        certificate: String, key: String, kind: [String] = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
        name: String = "localhost"
    ) {
        run(
            ["req", "-x509", "-newkey"] + kind + [
                "-nodes", "-days", "2", "-keyout", key, "-out", certificate, "-subj", "/CN=\(name)", "-addext",
                "subjectAltName=DNS:\(name),IP:127.0.0.1",
            ])
    }

    /// Runs openssl to its end, silently.
    /// - Parameter input: a file that it reads as its standard input.
    @discardableResult
    public static func run(_ words: [String], input: String = "/dev/null") -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
        for descriptor: Int32 in 1...2 {
            posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
        }
        var arguments = ([program] + words).map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var child: pid_t = 0
        guard posix_spawn(&child, program, &actions, nil, &arguments, environ) == 0 else { return -1 }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 && errno == EINTR {}
        return status >> 8 & 0xFF
    }
}
