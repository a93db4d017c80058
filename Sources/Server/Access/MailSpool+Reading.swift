import Glibc
import ThicketAuth

// The folder of messages from the side of the process that delivers them.
extension MailSpool {
    /// A message in the folder.
    struct Message: Sendable, Equatable {
        let to: MailAddress
        let bytes: [UInt8]
    }

    /// Endings of the names of messages, and of messages that were set aside.
    static let ending = ".eml"
    static let asideEnding = ".refused"
    /// Messages kept after they were set aside; of more the oldest are deleted.
    static let asideMax = 1_000
    /// Largest message, bytes.
    static let messageBytesMax = 65_536

    /// Names of the waiting messages, in no order; none when the folder does not exist.
    func names() throws(DirectoryError) -> [String] { try entries().filter { $0.hasSuffix(Self.ending) } }

    /// - Returns: nil when the file was not made by this server.
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

    /// Deletes a message that was delivered.
    func remove(_ name: String) {
        unlink(path(name))
        sync()
    }

    /// Renames a message that no mail server will accept: it stays for the operator, out of the queue.
    func setAside(_ name: String) {
        let base = String(name.dropLast(Self.ending.utf8.count))
        rename(path(name), path(base + Self.asideEnding))
        let aside = ((try? entries()) ?? []).filter { $0.hasSuffix(Self.asideEnding) }
            .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        for old in aside.dropLast(Self.asideMax) { unlink(path(old)) }
        sync()
    }

    /// Removes files of a process that ended while it wrote. To be called only before this process writes.
    func dropPartial() {
        for name in (try? entries()) ?? [] where name.hasPrefix(".") { unlink(path(name)) }
    }
}
