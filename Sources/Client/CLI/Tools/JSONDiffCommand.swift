import ThicketCommandLine
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `thicket jsondiff`: diff, apply and transform for other programs, a line of JSON in, a line out.
enum JSONDiffCommand {
    /// Bytes of one line at most.
    private static let lineBytesMax: Int = 256 << 20

    static func run(_ call: Call) throws(Failure) {
        guard call.flag("lines") else {
            throw Failure("say --lines: one JSON object a line on standard input, one answer a line", .usage)
        }
        guard let verb: JSONDiffLines.Verb = .init(rawValue: call.argument("VERB")) else {
            throw Failure("'\(call.argument("VERB"))' is none of diff, apply, transform", .usage)
        }
        var chunk: [UInt8] = .init(repeating: 0, count: 1 << 16)
        var line: [UInt8] = []
        while true {
            let count: Int = read(STDIN_FILENO, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure("standard input cannot be read: \(Files.reason())") }
            guard count > 0 else { break }
            var rest: ArraySlice<UInt8> = chunk[..<count]
            var answers: [UInt8] = []
            while let end: Int = rest.firstIndex(of: 0x0A) {
                line += rest[..<end]
                answer(line, verb, &answers)
                line.removeAll(keepingCapacity: true)
                rest = rest[(end + 1)...]
            }
            line += rest
            guard line.count <= lineBytesMax else { throw Failure("a line is longer than \(lineBytesMax) bytes") }
            try write(answers)
        }
        var last: [UInt8] = []
        answer(line, verb, &last)
        try write(last)
    }

    private static func answer(_ line: [UInt8], _ verb: JSONDiffLines.Verb, _ answers: inout [UInt8]) {
        // A line of nothing but white space asks for nothing.
        guard line.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }) else { return }
        answers += JSONDiffLines.answer(line: line, verb: verb)
        answers.append(0x0A)
    }

    private static func write(_ bytes: [UInt8]) throws(Failure) {
        guard bytes.isEmpty || Terminal.write(bytes, to: Terminal.standardOutput) else {
            throw Failure("the output could not be written")
        }
    }
}
