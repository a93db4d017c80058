import ThicketCommandLine

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Standard input line by line, one line of JSON in, one line out: the interface for other programs.
enum JSONLines {
    /// Answers every line in order, also an empty one; bytes after the last line feed are a line unless they are empty.
    /// - Parameters:
    ///   - lineBytesMax: a longer line ends the run.
    ///   - answer: receives a line without its line feed, and returns one without.
    static func serve(lineBytesMax: Int, _ answer: ([UInt8]) -> [UInt8]) throws(Failure) {
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        var line = [UInt8]()
        while true {
            let count = read(STDIN_FILENO, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure("standard input cannot be read: \(Files.reason())") }
            guard count > 0 else { break }
            var rest = chunk[..<count]
            while let end = rest.firstIndex(of: 0x0A) {
                line += rest[..<end]
                guard line.count <= lineBytesMax else { throw tooLong(lineBytesMax) }
                try reply(to: line, answer)
                line.removeAll(keepingCapacity: true)
                rest = rest[(end + 1)...]
            }
            line += rest
            guard line.count <= lineBytesMax else { throw tooLong(lineBytesMax) }
        }
        if !line.isEmpty { try reply(to: line, answer) }
    }

    private static func tooLong(_ bytes: Int) -> Failure { Failure("a line is longer than \(bytes) bytes") }

    private static func reply(to line: [UInt8], _ answer: ([UInt8]) -> [UInt8]) throws(Failure) {
        guard Terminal.write(answer(line) + [0x0A], to: Terminal.standardOutput) else { throw .output }
    }
}
