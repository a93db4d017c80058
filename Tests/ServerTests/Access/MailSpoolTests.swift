import Glibc
import Testing
import ThicketAuth
import ThicketCrypto

@testable import ThicketServer

@Suite("The folder of outgoing mail")
final class MailSpoolTests {
    private let folder = "/tmp/thicket-mail-\(getpid())-\(RandomBytes.hex(6))"

    deinit {
        for name in names { remove(folder + "/" + name) }
        remove(folder)
    }

    private var names: [String] {
        guard let entries: OpaquePointer = opendir(folder) else { return [] }
        defer { closedir(entries) }
        var names: [String] = []
        while let entry: UnsafeMutablePointer<dirent> = readdir(entries) {
            let name: String = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    @Test("each message is one complete file with mode 0600 and CRLF line ends")
    func message() throws {
        let spool = MailSpool(folder: folder, from: "thicket@example.com")
        try spool.put(try Self.mail("Your code", "1\n2\n"), now: 1_795_324_861.5)
        let name: String = try #require(names.first)
        #expect(names.count == 1)
        #expect(name.hasPrefix("1795324861500-") && name.hasSuffix(".eml"))
        var info = stat()
        #expect(stat(folder + "/" + name, &info) == 0)
        #expect(info.st_mode & 0o777 == 0o600)
        #expect(stat(folder, &info) == 0 && info.st_mode & 0o777 == 0o700)
        #expect(
            FileText.read(folder + "/" + name, bytesMax: 10_000)
                == "From: thicket@example.com\r\nTo: a@b\r\nSubject: Your code\r\n"
                + "Date: Sun, 22 Nov 2026 05:21:01 +0000\r\nMessage-ID: <\(name.dropLast(4))@example.com>\r\n"
                + "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n"
                + "\r\n1\r\n2\r\n")
    }

    @Test("a rehearsed message leaves no file")
    func rehearsal() throws {
        let spool = MailSpool(folder: folder, from: "thicket@example.com")
        try spool.rehearse(try Self.mail("Your code", "1\n"), now: 1)
        #expect(names.isEmpty)
    }

    private static func mail(_ subject: String, _ text: String) throws -> Mail {
        Mail(to: try #require(MailAddress("a@b")), subject: subject, text: text)
    }

    @Test("an unwritable folder is a DirectoryError, and no file is left")
    func unwritable() throws {
        let spool = MailSpool(folder: folder + "/none/outbox", from: "t@x")
        #expect(throws: DirectoryError.self) { try spool.put(try Self.mail("s", "t"), now: 0) }
        #expect(names.isEmpty)
    }
}
