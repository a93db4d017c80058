import Testing

/// The client library uses only what Apple platforms have, too; each exception is marked with its replacement.
@Suite("Portability of the client")
struct PortabilityTests {
    /// The folders of the client and its programs.
    private static let folders = [
        "Sources/Platform", "Sources/Protocol", "Sources/Crypto", "Sources/SealedShape", "Sources/Sealed",
        "Sources/TreeShape", "Sources/Tree", "Sources/SQLite", "Sources/Client", "Sources/Treesystem", "Sources/CLI",
        "Sources/CommandLine",
    ]

    /// APIs of Linux only, and libraries that another one replaces on Apple platforms.
    private static let linuxOnly = [
        "Glibc.", "CLOCK_BOOTTIME", "inotify_", "epoll", "eventfd", "signalfd", "TIOCOUTQ", "O_TMPFILE", "renameat2",
        "import CCurl", "import COpenSSL",
    ]

    @Test("the C library is imported under its name on both systems")
    func imports() {
        for folder in Self.folders {
            for path in SwiftText.paths(folder) {
                let lines = SwiftText.lines(path)
                for (number, line) in lines.enumerated() where line.hasSuffix("import Glibc") {
                    let before = lines[max(0, number - 3)..<number]
                    #expect(
                        before.contains { $0.contains("#if canImport(Darwin)") }
                            || PortabilityTests.isMarked(path),
                        "\(path):\(number + 1): import Darwin where there is one, or mark the place as Linux only")
                }
            }
        }
    }

    @Test("each use of a Linux-only API is marked with its replacement on Apple platforms")
    func marks() {
        for folder in Self.folders {
            for path in SwiftText.paths(folder) {
                let code = SwiftText.code(path)
                for word in Self.linuxOnly where !Bytes.places(of: word, in: code).isEmpty {
                    #expect(
                        PortabilityTests.isMarked(path),
                        "\(path) uses \(word) and has no mark 'Linux only: …. On Apple platforms …'")
                }
            }
        }
    }

    @Test("at most 8 places are marked, so that a port is a matter of days")
    func count() {
        // Crypto is one place: the module over OpenSSL, each file of which names its replacement in CryptoKit.
        let marked = Self.folders.flatMap(SwiftText.paths).filter(PortabilityTests.isMarked)
            .filter { !$0.hasPrefix("Sources/Crypto/") }
        #expect(!marked.isEmpty && marked.count <= 8, "\(marked)")
    }

    /// Whether a comment names what is Linux only and its replacement elsewhere.
    private static func isMarked(_ path: String) -> Bool {
        let comments = Repository.lines(path).filter { $0.contains("//") }
        let text = comments.map { String($0.drop { $0 == " " || $0 == "/" }) }.joined(separator: " ")
        return text.contains("Linux only:") && text.contains("Apple platforms")
    }
}
