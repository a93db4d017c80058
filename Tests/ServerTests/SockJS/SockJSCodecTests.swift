import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

@Suite("SockJS texts, payloads and paths")
struct SockJSCodecTests {
    private static func json(_ text: String, hidesTags: Bool = false) -> String {
        var bytes: [UInt8] = []
        SockJSText.append(text.utf8, to: &bytes, hidesTags: hidesTags)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("exactly the characters that JSON and browsers need are escaped")
    func escapes() {
        for value: UInt32 in 0...0xFFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let short: [UInt32: String] = [
                0x08: "\\b", 0x09: "\\t", 0x0A: "\\n", 0x0C: "\\f", 0x0D: "\\r", 0x22: "\\\"", 0x5C: "\\\\",
            ]
            let isFragile: Bool =
                switch value {
                case 0...0x1F, 0x200C...0x200F, 0x2028...0x202F, 0x2060...0x206F, 0xFFF0...0xFFFF: true
                default: false
                }
            let digits = String(value, radix: 16)
            let long: String = "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            let expected: String = short[value] ?? (isFragile ? long : String(scalar))
            let isRight: Bool = Self.json("a\(String(scalar))z").utf8.elementsEqual("\"a\(expected)z\"".utf8)
            if !isRight { Issue.record("U+\(digits) is written \(Self.json(String(scalar)))") }
        }
        #expect(Self.json("😀é漢") == "\"😀é漢\"")
        #expect(Self.json("</script>", hidesTags: true) == "\"\\u003c/script>\"")
        #expect(Self.json("") == "\"\"")
    }

    @Test("escaped text is read back unchanged, whatever it holds")
    func roundTrip() throws {
        for seed: UInt64 in 1...300 {
            var random = SeededRandom(seed: seed)
            var text = ""
            for _ in 0..<Int.random(in: 0...40, using: &random) {
                let range: ClosedRange<UInt32> =
                    [0...0x7F, 0x2000...0x2070, 0xFFE0...0xFFFF, 0...0x10FFFF]
                    .randomElement(using: &random) ?? 0...0x7F
                guard let scalar = Unicode.Scalar(UInt32.random(in: range, using: &random)) else { continue }
                text.unicodeScalars.append(scalar)
            }
            let element: [UInt8] = SockJSText.element(text.utf8)
            let back: [[UInt8]] = try SockJSPayload.messages([0x5B] + element + [0x5D])
            #expect(back == [Array(text.utf8)], "seed \(seed)")
        }
    }

    @Test("a frame that is shared as a WebSocket's returns its text, whatever its length")
    func sharedFrame() {
        for count: Int in [0, 1, 125, 126, 65_535, 65_536, 70_000] {
            let text = [UInt8](repeating: 0x61, count: count)
            #expect(SharedFrame(text: text).text.elementsEqual(text))
        }
    }

    @Test("payloads are arrays of strings; everything else is distinguished as the protocol does")
    func payloads() {
        let cases: [(String, Result<[String], SockJSPayload.Failure>)] = [
            ("[\"x\"]", .success(["x"])), ("[]", .success([])), (" [ \"a\" , \"b\" ] ", .success(["a", "b"])),
            ("[\"\\u00e9\\n\\ud83d\\ude00\"]", .success(["é\n😀"])), ("", .failure(.missing)),
            ("\"x\"", .failure(.missing)),
            ("{}", .failure(.missing)), ("[\"x", .failure(.broken)), ("[1]", .failure(.broken)),
            ("[[\"x\"]]", .failure(.broken)), ("[null]", .failure(.broken)), ("[\"x\"]]", .failure(.broken)),
            // Half a surrogate pair becomes what a browser's WebSocket would have made of it; a whole pair stays.
            ("[\"\\ud83d\"]", .success(["\u{FFFD}"])), ("[\"a\\ude00b\"]", .success(["a\u{FFFD}b"])),
            ("[\"\\ud83d\\ud83d\\ude00\"]", .success(["\u{FFFD}😀"])),
            ("[\"\\\\ud83d\\ud83d\"]", .success(["\\ud83d\u{FFFD}"])), ("[\"\\ud83d\",1]", .failure(.broken)),
        ]
        for (body, expected) in cases {
            let result: Result<[String], SockJSPayload.Failure> = Self.result { () throws(SockJSPayload.Failure) in
                try SockJSPayload.messages(Array(body.utf8))
            }
            #expect(result == expected, "\(body)")
        }
        let many: String =
            "[" + repeatElement("\"\"", count: SockJSPayload.messagesMax + 1).joined(separator: ",") + "]"
        #expect(throws: SockJSPayload.Failure.tooMany) { try SockJSPayload.messages(Array(many.utf8)) }
    }

    private static func result(
        _ body: () throws(SockJSPayload.Failure) -> [[UInt8]]
    ) -> Result<[String], SockJSPayload.Failure> {
        do throws(SockJSPayload.Failure) {
            return .success(try body().map { String(decoding: $0, as: UTF8.self) })
        } catch {
            return .failure(error)
        }
    }

    @Test("jsonp_send accepts a form's field and a plain body")
    func forms() {
        let form = "application/x-www-form-urlencoded"
        let cases: [(String, String?, Result<[String], SockJSPayload.Failure>)] = [
            ("d=%5B%22x%22%5D", form, .success(["x"])), ("a=1&d=[%22a+b%22]&d=no", form, .success(["a b"])),
            ("d=%5B%22x%22%5D", "Application/X-WWW-Form-Urlencoded ; charset=UTF-8", .success(["x"])),
            ("[\"%61bc\"]", "text/plain", .success(["%61bc"])), ("[\"x\"]", nil, .success(["x"])),
            ("", form, .failure(.missing)), ("d=", form, .failure(.missing)), ("d", form, .failure(.missing)),
            ("p=p", form, .failure(.missing)), ("d=%5B%22x", form, .failure(.broken)),
            ("d=%5", form, .failure(.broken)),
            ("d=%zz", form, .failure(.broken)),
        ]
        for (body, type, expected) in cases {
            let result: Result<[String], SockJSPayload.Failure> = Self.result { () throws(SockJSPayload.Failure) in
                try SockJSPayload.messages(Array(body.utf8), contentType: type)
            }
            #expect(result == expected, "\(body)")
        }
    }

    @Test("a WebSocket of a session accepts an array, one string, or nothing")
    func socketPayloads() throws {
        #expect(try SockJSPayload.messages(ofSocket: Array("[\"a\",\"b\"]".utf8)) == [[0x61], [0x62]])
        #expect(try SockJSPayload.messages(ofSocket: Array("\"a\"".utf8)) == [[0x61]])
        #expect(try SockJSPayload.messages(ofSocket: []).isEmpty)
        for body: String in ["[\"a", "{}", "7", " "] {
            #expect(throws: SockJSPayload.Failure.broken) { try SockJSPayload.messages(ofSocket: Array(body.utf8)) }
        }
    }

    @Test("paths name the places of the protocol, and nothing else")
    func paths() {
        let cases: [(String, SockJSPath.Place?)] = [
            ("", .greeting), ("/", .greeting), ("/info", .info), ("/iframe.html", .iframe), ("/iframe-a.html", .iframe),
            ("/iframe-.html", .iframe), ("/iframe-0.1.2.html", .iframe), ("/iframe-0.1.2abc-dirty.2144.html", .iframe),
            ("/sockjs.min.js", .library), ("/websocket", nil), ("/websocket/", nil),
            ("/000/s1/websocket", .session("s1", .websocket)), ("/a/a/xhr", .session("a", .xhr)),
            ("/_/_/xhr_send", .session("_", .xhrSend)), ("/1/1/xhr_streaming", .session("1", .xhrStreaming)),
            ("/abcdefgh_i-j%20/abcdefg_i-j%20/jsonp", .session("abcdefg_i-j%20", .jsonp)),
            ("/9/x/eventsource", .session("x", .eventsource)), ("/9/x/htmlfile", .session("x", .htmlfile)),
            ("/9/x/jsonp_send", .session("x", .jsonpSend)),
        ]
        for (rest, place) in cases {
            #expect(SockJSPath(Substring("/sock/1/Notes" + rest))?.place == place, "\(rest)")
        }
        let nothing: [String] = [
            "/a", "/a.html", "//", "///", "/a/a", "/a/a/", "/iframe.htm", "/iframe", "/IFRAME.HTML", "/iframe.HTML",
            "/iframe.xml", "/iframe-/.html", "///xhr", "/a./a/xhr", "/a/a./xhr", "/././xhr", "//xhr", "////xhr",
            "/a/a/xhr/", "/a/a/xhrs", "/a/a/XHR", "/info/", "/a/\(String(repeating: "x", count: 129))/xhr",
            "/iframé.html",
        ]
        for rest in nothing {
            #expect(SockJSPath(Substring("/sock/1/notes" + rest))?.place == .nothing, "\(rest)")
        }
        for path: String in [
            "/", "/sock/1", "/sock/1/", "/sock/2/notes/info", "/sock/1/no%20app/info", "/sock/1//info",
        ] {
            #expect(SockJSPath(Substring(path)) == nil, "\(path)")
        }
    }

    @Test("each transport wraps a frame in its own way")
    func wrapping() {
        let frame: [UInt8] = Array("a[\"x\"]".utf8)
        let wrapped: [(SockJSReceiver, String)] = [
            (.init(.xhr), "a[\"x\"]\n"), (.init(.xhrStreaming), "a[\"x\"]\n"), (.init(.websocket), "a[\"x\"]"),
            (.init(.eventsource), "data: a[\"x\"]\r\n\r\n"),
            (.init(.htmlfile, callback: "cb"), "<script>\np(\"a[\\\"x\\\"]\");\n</script>\r\n"),
            (.init(.jsonp, callback: "a.cb"), "a.cb(\"a[\\\"x\\\"]\");\r\n"),
        ]
        for (receiver, text) in wrapped {
            #expect(String(decoding: receiver.wrap(frame), as: UTF8.self) == text)
        }
        #expect(SockJSReceiver(.xhrStreaming).prelude.count == 2_049)
        #expect(SockJSReceiver(.htmlfile, callback: "cb").prelude.count > 1_024)
    }
}
