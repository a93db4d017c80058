import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Where the iframe page loads the client library from.
@Suite("The SockJS client for pages in frames")
struct SockJSLibraryTests {
    private static let script: [UInt8] = Array("!function(e){window.SockJS=e}({})".utf8)

    private static func request(_ path: String, _ field: String = "") throws -> HTTPRequest {
        var reader = HTTPRequestReader()
        return try #require(
            try Array("GET \(path) HTTP/1.1\r\nhost: x\r\n\(field)\r\n".utf8).withUnsafeBytes {
                (bytes: UnsafeRawBufferPointer) in
                var input: UnsafeRawBufferPointer = bytes
                return try reader.next(&input)
            })
    }

    private static func replies(_ setting: String?, installed: [UInt8]?) -> SockJSReplies {
        var config = ServerConfig()
        if let setting { config.sockJSScript = setting }
        let settings = SockJSSettings(config) { path, bytesMax in
            #expect(path == "/usr/share/nodejs/sockjs-client/dist/sockjs.min.js" && bytesMax == 1 << 20)
            return installed
        }
        return SockJSReplies(settings: settings, unixTime: 0)
    }

    @Test("by default the page loads the installed library, from its own folder and from nowhere else")
    func installed() throws {
        let replies: SockJSReplies = Self.replies(nil, installed: Self.script)
        let page: HTTPResponse = replies.iframe(try Self.request("/sock/1/app/iframe.html"))
        #expect(page.status == 200)
        let text = String(decoding: page.body, as: UTF8.self)
        #expect(text.contains("<script src=\"sockjs.min.js\"></script>"))
        #expect(!text.contains("://"))
        let file: HTTPResponse = replies.library(try Self.request("/sock/1/app/sockjs.min.js"))
        #expect(file.status == 200 && file.body == Self.script)
        #expect(file.fields["content-type"] == "text/javascript; charset=UTF-8")
        #expect(file.fields["x-content-type-options"] == "nosniff")
        let tag: String = try #require(file.fields["etag"])
        let again: HTTPResponse = replies.library(
            try Self.request("/sock/1/app/sockjs.min.js", "if-none-match: \(tag)\r\n"))
        #expect(again.status == 304 && again.body.isEmpty)
    }

    @Test(
        "without a library the answer is 404 and names what to set",
        arguments: [(nil, nil), ("none", Self.script), ("javascript:x", Self.script)] as [(String?, [UInt8]?)])
    func missing(setting: String?, installed: [UInt8]?) throws {
        let replies: SockJSReplies = Self.replies(setting, installed: installed)
        for answer: HTTPResponse in [
            replies.iframe(try Self.request("/sock/1/app/iframe.html")),
            replies.library(try Self.request("/sock/1/app/sockjs.min.js")),
        ] {
            #expect(answer.status == 404)
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(text.contains("sockjs-script") && text.contains("node-sockjs-client"), "\(text)")
            #expect(answer.fields["access-control-allow-origin"] == "*")
        }
    }

    @Test("an operator's own address is named in the page, and the server gives out no library")
    func address() throws {
        let replies: SockJSReplies = Self.replies("https://example.com/s.js", installed: Self.script)
        let page: HTTPResponse = replies.iframe(try Self.request("/sock/1/app/iframe.html"))
        #expect(
            String(decoding: page.body, as: UTF8.self).contains("<script src=\"https://example.com/s.js\"></script>"))
        #expect(replies.library(try Self.request("/sock/1/app/sockjs.min.js")).status == 404)
    }
}
