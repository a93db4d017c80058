import Testing
import ThicketTestSupport

@testable import ThicketServer

/// The tests of the loop over plain sockets, run a second time with peers and servers that use TLS.
@Suite(
    "The event loop over TLS", .serialized,
    .enabled(if: SecureEdge.hasOpenSSL, "the command openssl is missing: apt install openssl"))
struct LoopOverTLSTests {
    /// A test of another suite.
    struct Again: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let run: @Sendable () throws -> Void
        init(_ name: String, _ run: @escaping @Sendable () throws -> Void) { (testDescription, self.run) = (name, run) }
    }

    static let all: [Again] = [
        Again("keep-alive") { try LoopBasicsTests().keepAlive() },
        Again("echo of many sizes") { try LoopBasicsTests().echo() },
        Again("graceful stop") { try LoopBasicsTests().stop() },
        Again("every case of HTTP") { try LoopHTTPTests().table() },
        Again("pipelining") { try LoopHTTPTests().pipelining() },
        Again("pipelining without reading") { try LoopHTTPTests().pipeliningWithoutReading() },
        Again("100 Continue") { try LoopHTTPTests().continues() },
        Again("half-closed peers") { try LoopHTTPTests().halfClosed() },
        Again("Connection: close") { try LoopHTTPTests().closing() },
        Again("eager frames") { try LoopHTTPTests().eagerFrames() },
        Again("timeouts of HTTP") { try LoopHTTPTests().timeouts() },
        Again("slow head") { try LoopHTTPTests().slowHead() },
        Again("unfinished bodies") { try LoopHTTPTests().gatheredTotal() },
        Again("slow reader of a WebSocket") { try LoopWebSocketTests().slowReader() },
        Again("much queued for all") { try LoopWebSocketTests().pendingTotal() },
        Again("pause") { try LoopWebSocketTests().pause() },
        Again("paused in the same turn") { try LoopWebSocketTests().pausedInTheSameTurn() },
        Again("closed by the delegate") { try LoopWebSocketTests().closedByUs() },
        Again("timeouts of WebSockets") { try LoopWebSocketTests().timeouts() },
        Again("vanished peer") { try LoopWebSocketTests().vanished() },
        Again("binary refused") { try LoopWebSocketTests().binary() },
        Again("chunks of a stream") { try LoopStreamTests().chunks() },
        Again("stream of HTTP/1.0") { try LoopStreamTests().oldVersion() },
        Again("abandoned streams") { try LoopStreamTests().abandoned() },
        Again("held request") { try LoopStreamTests().held() },
        Again("slow reader of a stream") { try LoopStreamTests().slowReader() },
        Again("idle stream") { try LoopStreamTests().idle() },
        Again("a part of a turn for many") { try LoopRowStormTests().crowd() },
        Again("what came before a reset") { try LoopGoneTests().overTheNet() },
        Again("RFC 6455, as given") { try LiveConformanceTests().asGiven() },
    ]

    @Test("tests of the plain loop pass over TLS too", arguments: all)
    func again(_ test: Again) throws { try SecureEdge.$isOn.withValue(true, operation: test.run) }
}
