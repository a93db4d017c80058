import Glibc
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// Chromium without a window, driven over its DevTools protocol. Used by one thread at a time; ends with its owner.
public final class Browser {
    /// The path in Debian's package `chromium`.
    public static let path = "/usr/bin/chromium"
    public static var isThere: Bool { access(path, X_OK) == 0 }

    /// Texts of errors that the page caused: exceptions, and violations of its policy.
    public private(set) var errors: [String] = []

    private let process: ChildProcess
    private let folder = TemporaryFolder("browser")
    private let socket: WireSocket
    private var lastCall = 0
    private var session = ""
    private var unread: [[UInt8]] = []

    /// Starts it and waits until it can be driven.
    public init(width: Int = 900, height: Int = 900) throws(ProcessError) {
        process = try ChildProcess([
            Browser.path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--remote-debugging-port=0", "--user-data-dir=\(folder.path)/profile",
            "--window-size=\(width),\(height)", "about:blank",
        ])
        let file = "\(folder.path)/profile/DevToolsActivePort"
        guard let (port, path) = Steady.waitFor({ Browser.endpoint(file) }) else {
            throw ProcessError("chromium opened no port for its driver")
        }
        socket = try WireSocket(port: port, target: path)
        let target = try call("Target.createTarget", [("url", "about:blank")])
        let attached = try call(
            "Target.attachToTarget", [("targetId", target["targetId"]?.string ?? "")], flags: ["flatten"])
        session = attached["sessionId"]?.string ?? ""
        for domain in ["Page", "Runtime", "Log"] { try call("\(domain).enable") }
    }

    /// The port and the path by which the browser is driven; nil while the file is not written.
    private static func endpoint(_ file: String) -> (UInt16, String)? {
        guard let stream = fopen(file, "r") else { return nil }
        defer { fclose(stream) }
        var bytes = [UInt8](repeating: 0, count: 512)
        let count = fread(&bytes, 1, bytes.count, stream)
        let lines: [Substring] = String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n")
        guard lines.count == 2, let port = UInt16(lines[0]) else { return nil }
        return (port, String(lines[1]))
    }

    /// Shows a page.
    public func open(_ address: String) throws(ProcessError) { try call("Page.navigate", [("url", address)]) }

    /// The value of an expression in the page, as text.
    public func evaluate(_ expression: String) throws(ProcessError) -> String {
        let answer = try call("Runtime.evaluate", [("expression", "String(\(expression))")])
        return answer["result"]?["value"]?.string ?? ""
    }

    /// A picture of the page, as PNG.
    public func picture() throws(ProcessError) -> [UInt8] {
        let answer = try call("Page.captureScreenshot", [("format", "png")])
        guard let text = answer["data"]?.string, let bytes = Base64.decode(Array(text.utf8)[...])
        else { throw ProcessError("the browser gave no picture") }
        return bytes
    }

    public func close() throws(ProcessError) {
        session = ""
        try call("Browser.close")
        _ = try process.finish(seconds: 30)
    }

    // MARK: DevTools

    @discardableResult
    private func call(
        _ method: String, _ texts: [(String, String)] = [], flags: [String] = []
    ) throws(ProcessError) -> JSONNode {
        lastCall += 1
        var writer = JSONWriter()
        writer.raw(Array("{\"id\":\(lastCall),\"method\":\"\(method)\",".utf8))
        if !session.isEmpty { writer.raw(Array("\"sessionId\":\"\(session)\",".utf8)) }
        writer.raw(Array("\"params\":{".utf8))
        for (place, (name, text)) in texts.enumerated() {
            writer.raw(Array("\(place > 0 ? "," : "")\"\(name)\":".utf8))
            writer.write(string: text)
        }
        for flag in flags { writer.raw(Array(",\"\(flag)\":true".utf8)) }
        writer.raw(Array("}}".utf8))
        socket.send(writer.bytes)
        let id = Int64(lastCall)
        guard let answer = Steady.waitFor({ self.answer(to: id) }) else {
            throw ProcessError("the browser did not answer \(method)")
        }
        guard let result = answer["result"] else {
            throw ProcessError("\(method): \(String(decoding: answer.rawBytes, as: UTF8.self))")
        }
        return result
    }

    /// The answer to a call, if it has arrived; earlier events are processed.
    private func answer(to id: Int64) -> JSONNode? {
        unread += socket.take()
        while !unread.isEmpty {
            guard let message = try? JSONDocument(parsing: unread.removeFirst()).root else { continue }
            if message["id"]?.int64 == id { return message }
            record(message)
        }
        return nil
    }

    private func record(_ event: JSONNode) {
        let text = String(decoding: event.rawBytes, as: UTF8.self)
        switch event["method"]?.string {
        case "Runtime.exceptionThrown": errors.append(text)
        case "Log.entryAdded":
            if event["params"]?["entry"]?["level"]?.string?.utf8.elementsEqual("error".utf8) == true {
                errors.append(text)
            }
        default: break
        }
    }
}
