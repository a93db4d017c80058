import ThicketCrypto

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The environment of this process. Passwords in it are never strings: they are copied into memory that is wiped when
/// it is freed, and overwritten in the environment, so that neither other programs (`/proc/PID/environ`) nor child
/// processes can read them.
public struct ProcessVariables: Sendable {
    /// The variables that hold a password. Their names are `THICKET_` and an option's.
    static let secretNames: [String] = [
        "password", "new-password", "old-password", "passphrase", "passcode", "content-passphrase",
        "link-passphrase",
    ]

    /// The other variables.
    let clear: [String: String]
    /// Passwords by the full name of the variable; none is empty.
    let secrets: [String: SecureBytes]

    init(clear: [String: String], secrets: [String: SecureBytes] = [:]) {
        (self.clear, self.secrets) = (clear, secrets)
    }

    /// Takes the variables out of the environment. Call it before any other thread runs: it writes where `getenv`
    /// reads.
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
            // The zeros leave the variable set and empty.
            for place in bytes.indices { bytes[place] = 0 }
        }
        // Child processes do not get an empty variable in the place of a password, either.
        for name in names { unsetenv(name) }
        return ProcessVariables(clear: clear, secrets: secrets)
    }
}
