import Glibc
import Testing
import ThicketBlocking
@testable import ThicketNet
import ThicketProcesses
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Programs of the system's own Python, started beside the test.
enum SystemPython {
    static let path = "/usr/bin/python3"

    /// Whether a module can be imported. Debian names the packages `python3-websockets` and `python3-wsproto`.
    static func has(_ module: String) -> Bool { (try? run(["-c", "import \(module)"]))?.code == 0 }

    /// A script of `Tests/InteropTests`.
    static func script(_ name: String) -> String {
        let here: [Substring] = #filePath.split(separator: "/").dropLast(3)
        return "/" + here.joined(separator: "/") + "/InteropTests/\(name)"
    }

    /// Runs Python to its end.
    static func run(_ arguments: [String]) throws -> ChildProcess.Outcome { try ChildProcess.run([path] + arguments) }
}

@Suite("The server with two third-party client libraries", .blocking)
struct InteropTests {
    private func drive(_ script: String) throws {
        var settings = NetSettings()
        settings.messageBytesMax = 1 << 20
        settings.acceptsBinary = true
        let server = try LoopThread(settings: settings) { EchoDelegate($0) }
        let outcome: ChildProcess.Outcome = try SystemPython.run([SystemPython.script(script), String(server.port)])
        #expect(outcome.code == 0, "\(outcome)")
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
