import Testing

/// The client library keeps to what Apple platforms have too; where it cannot, the place says so and what would stand
/// there instead.
@Suite("Portability of the client")
struct PortabilityTests {
    /// What the client and its programs are made of.
    private static let folders: [String] = [
        "Sources/Platform", "Sources/Protocol", "Sources/Crypto", "Sources/SealedShape", "Sources/Sealed",
        "Sources/SQLite", "Sources/Client", "Sources/CLI", "Sources/CommandLine",
    ]

    /// What only Linux has, or what another library does on Apple platforms.
    private static let linuxOnly: [String] = [
        "Glibc.", "CLOCK_BOOTTIME", "inotify_", "epoll", "eventfd", "signalfd", "TIOCOUTQ", "O_TMPFILE", "renameat2",
        "import CCurl", "import COpenSSL",
    ]

    @Test("the C library is imported under its name on both systems")
    func imports() {
        for folder: String in Self.folders {
            for path: String in SwiftText.paths(folder) {
                let lines: [String] = SwiftText.lines(path)
                for (number, line): (Int, String) in lines.enumerated() where line.hasSuffix("import Glibc") {
                    let before: ArraySlice<String> = lines[max(0, number - 3)..<number]
                    #expect(
                        before.contains { $0.contains("#if canImport(Darwin)") }
                            || PortabilityTests.isMarked(path),
                        "\(path):\(number + 1): import Darwin where there is one, or mark the place as Linux only")
                }
            }
        }
    }

    @Test("what only Linux has stands in a place that is marked, with what Apple platforms have instead")
    func marks() {
        for folder: String in Self.folders {
            for path: String in SwiftText.paths(folder) {
                let code: [UInt8] = SwiftText.code(path)
                for word: String in Self.linuxOnly where !Bytes.places(of: word, in: code).isEmpty {
                    #expect(
                        PortabilityTests.isMarked(path),
                        "\(path) uses \(word) and has no mark 'Linux only: …. On Apple platforms …'")
                }
            }
        }
    }

    @Test("few places are marked, so that a port is a matter of days")
    func count() {
        // Crypto is one place: the module over OpenSSL, each file of which names what CryptoKit has for it.
        let marked: [String] = Self.folders.flatMap(SwiftText.paths).filter(PortabilityTests.isMarked)
            .filter { !$0.hasPrefix("Sources/Crypto/") }
        #expect(!marked.isEmpty && marked.count <= 8, "\(marked)")
    }

    /// A comment says what is Linux only and what stands for it elsewhere.
    private static func isMarked(_ path: String) -> Bool {
        let comments: [Substring] = Repository.lines(path).filter { $0.contains("//") }
        let text: String = comments.map { String($0.drop { $0 == " " || $0 == "/" }) }.joined(separator: " ")
        return text.contains("Linux only:") && text.contains("Apple platforms")
    }
}
