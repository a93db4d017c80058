/// The bytes a connection has to write, as frames that may be shared with other connections.
///
/// The usual case, one frame that leaves in the same turn, costs no allocation: the first frame has its own field.
struct Outbox {
    private var first = [UInt8]()
    private var rest = [[UInt8]]()
    /// Number of written frames in `rest`; removed in batches, so that taking a frame from the front stays cheap.
    private var restStart = 0
    /// Bytes of the first frame that are written.
    private var sent = 0
    /// Bytes left to write.
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ frame: [UInt8]) {
        guard !frame.isEmpty else { return }
        if count == 0 { first = frame } else { rest.append(frame) }
        count += frame.count
    }

    /// Passes the next bytes to write to `body`: a large frame in place, small ones gathered in `gather`.
    func withNext<Result>(gather: UnsafeMutableRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let isAlone = restStart == rest.count
        if isAlone || first.count - sent >= gather.count / 2 {
            return first.withUnsafeBytes { body(.init(rebasing: $0[sent...])) }
        }
        var filled = 0
        Self.copy(first[sent...], to: gather, &filled)
        var index = restStart
        while index < rest.count && filled < gather.count {
            Self.copy(rest[index][...], to: gather, &filled)
            index += 1
        }
        return body(.init(rebasing: gather[..<filled]))
    }

    private static func copy(_ bytes: ArraySlice<UInt8>, to gather: UnsafeMutableRawBufferPointer, _ filled: inout Int)
    {
        let taken = min(bytes.count, gather.count - filled)
        bytes.withUnsafeBytes { source in
            UnsafeMutableRawBufferPointer(rebasing: gather[filled...]).copyMemory(
                from: .init(rebasing: source[..<taken]))
        }
        filled += taken
    }

    /// Removes `written` bytes from the front and frees finished frames.
    mutating func consume(_ written: Int) {
        count -= written
        var written = written
        while written > 0 {
            let left = first.count - sent
            guard written >= left else {
                sent += written
                return
            }
            written -= left
            advance()
        }
    }

    private mutating func advance() {
        sent = 0
        guard restStart < rest.count else {
            first = []
            rest = []
            restStart = 0
            return
        }
        first = rest[restStart]
        rest[restStart] = []
        restStart += 1
        if restStart >= 32 && restStart * 2 >= rest.count {
            rest.removeFirst(restStart)
            restStart = 0
        }
        if restStart == rest.count { (rest, restStart) = ([], 0) }
    }

    /// Drops all frames except the rest of a frame in progress and the frames of the next `least` bytes.
    mutating func dropUnstarted(keeping least: Int = 0) {
        if sent == 0 && least == 0 { first = [] }
        count = first.count - sent
        var end = restStart
        while count < least && end < rest.count {
            count += rest[end].count
            end += 1
        }
        rest.removeSubrange(end...)
        if restStart == rest.count { (rest, restStart) = ([], 0) }
    }
}
