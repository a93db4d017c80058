import Glibc
import ThicketAuth

/// The mail server for messages to users, and their sender.
public struct SMTPSettings: Sendable, Equatable {
    /// `smtp://host:port` or `smtps://host:port`, as libcurl expects it.
    public let url: String
    /// The connection begins with TLS (RFC 8314, 3.3).
    public let isSMTPS: Bool
    /// The connection must switch to TLS before any other command (RFC 3207).
    public let needsStartTLS: Bool
    /// A file of two lines, user and password; nil where the server requires none.
    public let loginFile: String?
    /// A file of trusted certificate authorities; nil: those of the system.
    public let authorityFile: String?
    /// Sender of the messages.
    public let from: MailAddress

    /// Most bytes of the file with user and password.
    static let loginBytesMax = 2_048

    /// The unusable setting, and what to do about it.
    public struct Problem: Error, Equatable, CustomStringConvertible {
        /// The setting, the problem and the remedy in one line.
        public let description: String
        init(_ description: String) { self.description = description }
    }

    /// The settings of a server; nil where mail stays in its folder.
    init?(_ config: ServerConfig) throws(Problem) {
        guard let url = Self.named(config.smtpURL) else { return nil }
        guard let from = MailAddress(config.mailFrom) else {
            throw Problem(
                "mail-from: '\(SettingValue.shown(config.mailFrom))' is not a plain address, such as thicket@example.com"
            )
        }
        let hasTLS = try Self.check(url)
        self.url = url
        isSMTPS = hasTLS
        needsStartTLS = !hasTLS && config.smtpStartTLS
        loginFile = Self.named(config.smtpLoginFile)
        authorityFile = Self.named(config.smtpCA)
        self.from = from
        if loginFile != nil, !hasTLS, !needsStartTLS {
            throw Problem(
                "smtp-login-file: the password would be sent unencrypted; set smtp-starttls to on or use smtps://")
        }
        if let file = authorityFile, access(file, R_OK) != 0 {
            throw Problem("smtp-ca: \(file) cannot be read: \(DataFolder.reason(errno))")
        }
        _ = try login()
    }

    /// User and password, read each time, so that a change needs no restart.
    func login() throws(Problem) -> (user: String, password: String)? {
        guard let path = loginFile else { return nil }
        var info = stat()
        guard stat(path, &info) == 0 else {
            throw Problem("smtp-login-file: \(path) cannot be read: \(DataFolder.reason(errno))")
        }
        guard info.st_mode & 0o077 == 0 else {
            throw Problem("smtp-login-file: other users can read \(path); 'chmod 600' it")
        }
        guard let text = FileText.read(path, bytesMax: Self.loginBytesMax) else {
            throw Problem("smtp-login-file: \(path) cannot be read, or is larger than \(Self.loginBytesMax) bytes")
        }
        let lines = text.utf8.split(separator: 0x0A).map { line in
            String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
        }
        guard lines.count == 2, lines.allSatisfy({ !$0.isEmpty && !$0.utf8.contains(0) }) else {
            throw Problem("smtp-login-file: \(path) must have two lines: the user, then the password")
        }
        return (lines[0], lines[1])
    }

    /// The value of a setting; nil for `none`.
    private static func named(_ value: String) -> String? { value.utf8.elementsEqual("none".utf8) ? nil : value }

    /// - Returns: whether the address begins with TLS.
    private static func check(_ url: String) throws(Problem) -> Bool {
        let scheme: String
        switch url {
        case _ where url.utf8.starts(with: "smtp://".utf8): scheme = "smtp://"
        case _ where url.utf8.starts(with: "smtps://".utf8): scheme = "smtps://"
        default: throw problem(url, "it must begin with smtp:// or smtps://")
        }
        let place = url.utf8.dropFirst(scheme.utf8.count)
        guard !place.contains(UInt8(ascii: "@")) else {
            throw problem(url, "user and password belong in a separate file, smtp-login-file")
        }
        guard let colon = place.lastIndex(of: UInt8(ascii: ":")),
            let port = Int(String(decoding: place[colon...].dropFirst(), as: UTF8.self)),
            (1...65_535).contains(port), isHost(place[..<colon])
        else { throw problem(url, "after \(scheme) it must have a host, ':' and a port, and nothing else") }
        return scheme.utf8.count > "smtp://".utf8.count
    }

    private static func isHost(_ host: String.UTF8View.SubSequence) -> Bool {
        if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") {
            var address = in6_addr()
            return inet_pton(AF_INET6, String(decoding: host.dropFirst().dropLast(), as: UTF8.self), &address) == 1
        }
        return !host.isEmpty
            && host.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."): true
                default: false
                }
            }
    }

    private static func problem(_ url: String, _ what: String) -> Problem {
        // The part before an '@' may be a password.
        let shown = url.utf8.contains(UInt8(ascii: "@")) ? "it" : "'\(SettingValue.shown(url))'"
        return Problem("smtp-url: \(shown) cannot be used: \(what), as in smtp://mail.example.com:587")
    }
}
