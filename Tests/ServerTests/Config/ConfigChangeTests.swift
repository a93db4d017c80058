import Testing
import ThicketProtocol

@testable import ThicketServer

@Suite("Settings that change while the server runs")
struct ConfigChangeTests {
    @Test("a changed setting is reported with both values; one that needs a restart is kept and reported apart")
    func split() {
        let running = ServerConfig()
        var fresh: ServerConfig = running
        fresh.limits.documentBytesMax = 2 << 20
        fresh.idleTimeout = .seconds(90)
        fresh.logLevel = .debug
        fresh.readerThreads = 7
        fresh.data = "elsewhere"
        let change = ConfigChange(from: running, to: fresh)
        #expect(
            change.applied == [
                .init(name: "log-level", before: "info", after: "debug"),
                .init(name: "idle-timeout", before: "1m", after: "90s"),
                .init(name: "document-bytes-max", before: "1MiB", after: "2MiB"),
            ])
        #expect(change.waiting.map(\.name) == ["data", "reader-threads"])
        #expect(change.config.readerThreads == 0 && change.config.data == running.data)
        #expect(change.config.limits.documentBytesMax == 2 << 20 && change.config.idleTimeout == .seconds(90))
        // The same file again applies nothing and lists the same waiting settings.
        let again = ConfigChange(from: change.config, to: fresh)
        #expect(again.applied.isEmpty && again.waiting == change.waiting && again.config == change.config)
    }

    @Test(
        "every setting is either applied or reported as waiting for a restart",
        arguments: ServerSettings.all.map(\.name))
    func everySetting(name: String) throws {
        let setting: Setting = try #require(ServerSettings.all.first { $0.name.utf8.elementsEqual(name.utf8) })
        let running = ServerConfig()
        var fresh: ServerConfig = running
        try setting.write(other(than: setting), &fresh)
        let change = ConfigChange(from: running, to: fresh)
        let waits: Bool = ServerSettings.fixed.contains(name)
        #expect(change.applied.map(\.name) == (waits ? [] : [name]))
        #expect(change.waiting.map(\.name) == (waits ? [name] : []))
        #expect(change.config == (waits ? running : fresh))
    }

    /// A value that is allowed and not the default.
    private func other(than setting: Setting) -> String {
        if setting.name.utf8.elementsEqual("app-versions".utf8) { return "ios=2.1" }
        return switch setting.kind {
        case .text, .file: "other"
        case .address: "127.0.0.1:9"
        case .networks: "10.0.0.0/8"
        case .origins: "https://app.example.com"
        case .flag: setting.defaultText == "on" ? "off" : "on"
        case .choice(let words): words.first { $0 != setting.defaultText } ?? ""
        case .integer(let range): String(range.upperBound)
        case .bytes(let range): "\(range.upperBound)B"
        case .duration(let range): "\(range.upperBound)ms"
        }
    }

    @Test("new rate limits apply to existing connections, raised or lowered")
    func rates() throws {
        var limits = ServerLimits()
        limits.changesPerSecond = 1
        limits.changesBurst = 1
        let harness = try HubHarness(limits: limits)
        let peer: Peer = harness.client("c")
        peer.send(edit("a", "x1", to: "1"), edit("b", "x2", to: "2"))
        #expect(peer.take().count == 2 && harness.paused == [peer.id])
        harness.pass(seconds: 3)
        #expect(harness.paused.isEmpty)
        limits.changesPerSecond = 1_000
        limits.changesBurst = 100
        harness.hub.use(limits)
        for number: Int in 0..<50 { peer.send(edit("k\(number)", "y\(number)", to: "1")) }
        #expect(peer.take().count == 50 && harness.paused.isEmpty)
        limits.channelsPerConnectionMax = 1
        harness.hub.use(limits)
        #expect(
            peer.ask(#"1:init:{"api":"1.1","clientid":"c","token":"ann-token","app_id":"app","name":"notes"}"#)
                == [#"1:auth:{"msg":"Too many channels","code":500}"#])
    }
}
