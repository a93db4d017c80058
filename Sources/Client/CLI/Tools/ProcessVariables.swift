import ThicketCrypto

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The environment of this process. Passwords in it are no texts: they go from where the system has put them into
/// memory that wipes itself, and are overwritten there, so that neither other programs' looks (`/proc/PID/environ`) nor
/// programs that are started from here find them.
public struct ProcessVariables: Sendable {
    /// Those that hold a password. Their names are `THICKET_` and an option's.
    static let secretNames: [String] = [
        "password", "new-password", "old-password", "passphrase", "passcode", "content-passphrase",
    ]

    /// The others.
    let clear: [String: String]
    /// By the whole name; none is empty.
    let secrets: [String: SecureBytes]

    init(clear: [String: String], secrets: [String: SecureBytes] = [:]) {
        (self.clear, self.secrets) = (clear, secrets)
    }

    /// Takes what there is. Before any other thread runs: it writes where `getenv` reads.
    public static func take() -> ProcessVariables {
        let names = secretNames.map(Call.variable)
        var (clear, secrets): ([String: String], [String: SecureBytes]) = ([:], [:])
        var next = environ
        while let entry = next.pointee {
            next += 1
            guard let sign = strchr(entry, Int32(UInt8(ascii: "="))) else { continue }
            let name = String(
                decoding: UnsafeRawBufferPointer(start: entry, count: entry.distance(to: sign)), as: UTF8.self)
            let value = sign + 1
            guard names.contains(where: { same($0, name) }) else {
                clear[name] = String(cString: value)
                continue
            }
            let bytes = UnsafeMutableRawBufferPointer(start: value, count: strlen(value))
            if bytes.count > 0 { secrets[name] = SecureBytes(copying: UnsafeRawBufferPointer(bytes)) }
            // Zeros end it, so that it is there and empty.
            for place in bytes.indices { bytes[place] = 0 }
        }
        // Nor do programs that are started here get an empty one in the place of a password.
        for name in names { unsetenv(name) }
        return ProcessVariables(clear: clear, secrets: secrets)
    }
}
