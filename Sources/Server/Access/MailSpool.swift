import Glibc
import ThicketAuth
import ThicketCrypto

/// A folder of messages to users, one file each (RFC 5322). `ServerMail` delivers them to a mail server if one is
/// configured; otherwise the operator's mail program does.
public final class MailSpool: MailOutbox {
    /// Messages that the folder may hold; one more is refused until some are delivered.
    public static let filesMax = 10_000

    private let folder: String
    private let from: String
    private let onAdded: @Sendable () -> Void

    /// - Parameters:
    ///   - from: address of the sender.
    ///   - onAdded: called after each message that was added.
    public init(folder: String, from: String, onAdded: @escaping @Sendable () -> Void = {}) {
        (self.folder, self.from, self.onAdded) = (folder, from, onAdded)
    }

    /// Adds a message, on disk when the call returns. `now`: seconds since 1970.
    public func put(_ mail: Mail, now: Double) throws(DirectoryError) {
        try write(mail, now, isKept: true)
        onAdded()
    }

    /// Does the same work as `put` and discards the message, so that both take the same time.
    public func rehearse(_ mail: Mail, now: Double) throws(DirectoryError) { try write(mail, now, isKept: false) }

    private func write(_ mail: Mail, _ now: Double, isKept: Bool) throws(DirectoryError) {
        if mkdir(folder, 0o700) != 0, errno != EEXIST { throw failure("creating it") }
        guard try names().count < Self.filesMax else {
            throw DirectoryError("\(folder) holds \(Self.filesMax) undelivered messages")
        }
        let name = "\(Int64(max(0, min(1e15, now * 1_000))))-\(RandomBytes.hex(8))"
        // A name with a leading dot is not a message yet.
        let (partial, path) = (path("." + name), path(name + Self.ending))
        let bytes = message(mail, name, now)
        let file = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw failure("writing there") }
        let isWritten = Glibc.write(file, bytes, bytes.count) == bytes.count && fsync(file) == 0
        let reason = failure("writing there")
        close(file)
        guard isWritten, isKept ? rename(partial, path) == 0 : unlink(partial) == 0 else {
            unlink(partial)
            throw reason
        }
        sync()
    }

    private func message(_ mail: Mail, _ name: String, _ now: Double) -> [UInt8] {
        let lines =
            [
                "From: \(from)", "To: \(mail.to)", "Subject: \(mail.subject)", "Date: \(Self.date(now))",
                "Message-ID: <\(name)@\(from.split(separator: "@").last ?? "thicket")>", "MIME-Version: 1.0",
                "Content-Type: text/plain; charset=utf-8",
                "Content-Transfer-Encoding: 8bit", "",
            ] + mail.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        return Array(lines.joined(separator: "\r\n").utf8)
    }

    /// RFC 5322, 3.3, in UTC.
    private static func date(_ now: Double) -> String {
        var seconds = time_t(max(0, min(1e11, now)))
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let (days, months) = (
            ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"],
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        )
        let time = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { $0 < 10 ? "0\($0)" : "\($0)" }
            .joined(separator: ":")
        return "\(days[Int(parts.tm_wday)]), \(parts.tm_mday) \(months[Int(parts.tm_mon)]) \(1_900 + parts.tm_year) "
            + "\(time) +0000"
    }

    /// All names in the folder; none when the folder does not exist.
    func entries() throws(DirectoryError) -> [String] {
        guard let names = opendir(folder) else {
            if errno == ENOENT { return [] }
            throw failure("reading it")
        }
        defer { closedir(names) }
        var found = [String]()
        while let entry = readdir(names) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { (bytes: UnsafeRawBufferPointer) in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { found.append(name) }
        }
        return found
    }

    func path(_ name: String) -> String { "\(folder)/\(name)" }

    /// Flushes the folder, so that new names are on disk. When that fails, a power cut loses the message as if it
    /// had never been sent.
    func sync() {
        let file = open(folder, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        fsync(file)
        close(file)
    }

    private func failure(_ what: String) -> DirectoryError {
        DirectoryError("the folder of outgoing mail \(folder): \(what): \(DataFolder.reason(errno))")
    }
}
