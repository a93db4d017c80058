import Glibc
import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Programs of the system's own Python, started beside the test.
enum SystemPython {
    static let path: String = "/usr/bin/python3"

    /// Whether a module can be imported. Debian names the packages `python3-websockets` and `python3-wsproto`.
    static func has(_ module: String) -> Bool { (try? run(["-c", "import \(module)"])) == 0 }

    /// A script of `Tests/InteropTests`.
    static func script(_ name: String) -> String {
        let here: [Substring] = #filePath.split(separator: "/").dropLast(3)
        return "/" + here.joined(separator: "/") + "/InteropTests/\(name)"
    }

    struct NotStarted: Error { let reason: String }

    /// Runs Python to its end, its output going where ours goes.
    ///
    /// - Returns: its exit code; 128 and the signal's number when one ended it.
    static func run(_ arguments: [String]) throws -> Int32 {
        var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var child: pid_t = 0
        let result: Int32 = posix_spawn(&child, path, nil, nil, &words, environ)
        guard result == 0 else { throw NotStarted(reason: String(cString: strerror(result))) }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 && errno == EINTR {}
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    }
}

@Suite("Two client libraries of others against our server")
struct InteropTests {
    private func drive(_ script: String) throws {
        var settings: NetSettings = .init()
        settings.messageBytesMax = 1 << 20
        settings.takesBinary = true
        let server: LoopThread = try .init(settings: settings) { EchoDelegate($0) }
        #expect(try SystemPython.run([SystemPython.script(script), String(server.port)]) == 0)
        try server.stop()
    }

    @Test(
        "python3-websockets is served as it expects",
        .enabled(if: SystemPython.has("websockets"), "the module websockets is missing: apt install python3-websockets")
    )
    func websockets() throws { try drive("drive_websockets.py") }

    @Test(
        "python3-wsproto is served as it expects",
        .enabled(if: SystemPython.has("wsproto"), "the module wsproto is missing: apt install python3-wsproto"))
    func wsproto() throws { try drive("drive_wsproto.py") }
}
