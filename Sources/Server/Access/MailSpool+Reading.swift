import Glibc
import ThicketAuth

// The folder of messages as the one sees it who hands them over.
extension MailSpool {
    /// A message as it lies there.
    struct Message: Sendable, Equatable {
        let to: MailAddress
        let bytes: [UInt8]
    }

    /// Ends of the names of messages, and of those that were set aside.
    static let ending = ".eml"
    static let asideEnding = ".refused"
    /// Messages that were set aside; of more the oldest go.
    static let asideMax = 1_000
    /// Bytes of a message at most.
    static let messageBytesMax = 65_536

    /// Names of the messages that wait, in no order; none where there is no folder.
    func names() throws(DirectoryError) -> [String] { try entries().filter { $0.hasSuffix(Self.ending) } }

    /// - Returns: nil when it is none that this server has made.
    func read(_ name: String) -> Message? {
        guard let bytes = FileText.readBytes(path(name), bytesMax: Self.messageBytesMax) else { return nil }
        let field: [UInt8] = Array("To: ".utf8)
        // The head ends at the first empty line.
        for line in bytes.split(separator: 0x0A, maxSplits: 16, omittingEmptySubsequences: false) {
            guard line.last == 0x0D, line.count > 1 else { return nil }
            guard line.starts(with: field) else { continue }
            return MailAddress(String(decoding: line.dropFirst(field.count).dropLast(), as: UTF8.self))
                .map { Message(to: $0, bytes: bytes) }
        }
        return nil
    }

    /// The message was taken.
    func remove(_ name: String) {
        unlink(path(name))
        sync()
    }

    /// Nobody will take the message: it stays for the operator to look at, out of the way.
    func setAside(_ name: String) {
        let base = String(name.dropLast(Self.ending.utf8.count))
        rename(path(name), path(base + Self.asideEnding))
        let aside = ((try? entries()) ?? []).filter { $0.hasSuffix(Self.asideEnding) }
            .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        for old in aside.dropLast(Self.asideMax) { unlink(path(old)) }
        sync()
    }

    /// Removes what a process left that ended while it wrote. Only before this process writes.
    func dropPartial() {
        for name in (try? entries()) ?? [] where name.hasPrefix(".") { unlink(path(name)) }
    }
}
