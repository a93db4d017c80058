import ThicketCommandLine
import ThicketProtocol

/// `thicket jsondiff`: diff, apply and transform for other programs; one line of JSON in, one line out.
enum JSONDiffCommand {
    /// Longest line in bytes.
    private static let lineBytesMax = 256 << 20

    static func run(_ call: Call) throws(Failure) {
        guard call.flag("lines") else {
            throw Failure("say --lines: one JSON object a line on standard input, one answer a line", .usage)
        }
        guard let verb = JSONDiffLines.Verb(rawValue: call.argument("VERB")) else {
            throw Failure("'\(call.argument("VERB"))' is none of diff, apply, transform", .usage)
        }
        try JSONLines.serve(lineBytesMax: lineBytesMax) { JSONDiffLines.answer(line: $0, verb: verb) }
    }
}
