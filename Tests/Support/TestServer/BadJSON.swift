/// Bodies that are not JSON, each with the server's reason.
public struct BadJSON: Sendable {
    public let name: String
    public let bytes: [UInt8]
    /// The message's rest behind "The body is ".
    public let reason: String

    private init(_ name: String, _ text: String, _ reason: String, place: String) {
        self.init(name, Array(text.utf8), "\(reason) (\(place))")
    }

    private init(_ name: String, _ bytes: [UInt8], _ reason: String) {
        (self.name, self.bytes, self.reason) = (name, bytes, "not JSON: \(reason)")
    }

    /// A word in all bodies but one, which no message may repeat.
    public static let secret = "hunter2"

    /// One for each reason. All begin as objects do.
    public static let all: [BadJSON] = [
        .init("NaN", #"{"p":"hunter2","a":NaN}"#, "an unexpected character", place: "line 1, column 20"),
        .init(
            "infinity", #"{"p":"hunter2","a":-Infinity}"#, "a number that is not valid in JSON",
            place: "line 1, column 21"),
        .init(
            "a key twice", #"{"p":"hunter2","p":"hunter2"}"#, "a repeated key", place: "line 1, column 16"),
        .init(
            "a key twice, on another line", "{\n  \"hunter2\": 1,\n  \"hunter2\": 2\n}", "a repeated key",
            place: "line 3, column 3"),
        .init("half a pair", #"{"p":"hunter2\ud83d"}"#, "half of a surrogate pair", place: "line 1, column 14"),
        .init(
            "not UTF-8", Array(#"{"p":"hunter2"#.utf8) + [0xC3] + Array("\"}".utf8),
            "it is not UTF-8 (line 1, column 14)"),
        .init(
            "a byte order mark", [0xEF, 0xBB, 0xBF] + Array(#"{"p":"hunter2"}"#.utf8),
            "it begins with a byte order mark (line 1, column 1): send or save it as UTF-8 without one"),
        .init(
            "something behind it", #"{"p":"hunter2"} hunter2"#, "more text follows after its end",
            place: "line 1, column 17"),
        .init("half of it", #"{"p":"hunter2""#, "it ends too early", place: "line 1, column 15"),
        .init("an escape", #"{"p":"hunter2\x"}"#, "an escape that is not valid in JSON", place: "line 1, column 14"),
        .init(
            "a control character", "{\"p\":\"hunter2\t\"}",
            "a control character inside a string; write it as an escape",
            place: "line 1, column 14"),
    ]

    /// Nothing at all.
    public static let empty = BadJSON("nothing", "", "it is empty", place: "line 1, column 1")
}
