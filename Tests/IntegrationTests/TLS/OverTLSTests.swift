import Testing
import ThicketTestSupport

/// The core tests of the server again, with clients and servers that speak TLS.
@Suite(
    "The server over TLS", .serialized,
    .enabled(if: SecureEdge.hasOpenSSL, "the command openssl is missing: apt install openssl"))
struct OverTLSTests {
    /// A test of another suite.
    struct Again: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let run: @Sendable () throws -> Void
        init(_ name: String, _ run: @escaping @Sendable () throws -> Void) { (testDescription, self.run) = (name, run) }
    }

    static let all = [
        Again("the whole dialogue") { try DialogueTests().dialogue(kind: .memory) },
        Again("every code") { try DialogueTests().codes(kind: .memory) },
        Again("restart") { try DialogueTests().restart(kind: .sqlite) },
        Again("stop") { try DialogueTests().stop() },
        Again("paths") { try DialogueTests().paths() },
        Again("pipelined requests") { try ConnectionTests().pipelined() },
        Again("behind a wait") { try ConnectionTests().behindAWait() },
        Again("100-continue") { try ConnectionTests().expectation() },
        Again("chunked bodies") { try ConnectionTests().chunks() },
        Again("SockJS polling") { try SockJSPollingTests().simpleSession() },
        Again("SockJS xhr-streaming") { try SockJSStreamTests().xhrStreaming() },
        Again("SockJS eventsource") { try SockJSStreamTests().eventSource() },
        Again("SockJS WebSocket sessions") { try SockJSStreamTests().webSocket() },
        Again("SockJS over HTTP/1.0") { try SockJSStreamTests().oldVersion() },
        Again("SockJS sync") { try SockJSSyncTests().sync(isStreaming: true) },
        Again("SockJS stop") { try SockJSEndTests().stopping() },
        Again("SockJS broken streams") { try SockJSEndTests().aborted(isReset: true) },
    ]

    @Test("core tests of the server pass over TLS", arguments: all)
    func again(_ test: Again) throws { try SecureEdge.$isOn.withValue(true, operation: test.run) }
}
