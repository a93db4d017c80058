import ThicketCommandLine

/// `thicket crypto`: seals and derives values for other programs; one line of JSON in, one line out.
enum CryptoCommand {
    /// Longest line in bytes: content of about 32 MiB in hex.
    private static let lineBytesMax = 64 << 20

    static func run(_ call: Call) throws(Failure) {
        guard call.flag("lines") else {
            throw Failure("say --lines: one JSON object a line on standard input, one answer a line", .usage)
        }
        guard let operation = CryptoLines.Operation(rawValue: call.argument("OP")) else {
            let all = CryptoLines.Operation.allCases.map(\.rawValue).joined(separator: ", ")
            throw Failure("'\(call.argument("OP"))' is none of \(all)", .usage)
        }
        try JSONLines.serve(lineBytesMax: lineBytesMax) { CryptoLines.answer(line: $0, operation) }
    }
}
