/// Reads the requests of one connection as they pass. It has its own parser, so that no code of the product measures
/// itself. A connection that becomes a WebSocket is not read further.
struct RequestReader {
    /// Bytes of a part of an upload, but for the last one; the client's plan below 40 GB.
    static let partBytes = 4 << 20
    /// Longest head that is read.
    private static let headBytesMax = 64 << 10

    private var head = [UInt8]()
    private var bodyLeft = 0
    /// The passage to which the body belongs.
    private var passage: Int?
    private var isOpaque = false

    mutating func read(_ bytes: ArraySlice<UInt8>, into record: inout PassageRecord) {
        var bytes = bytes
        while !bytes.isEmpty, !isOpaque {
            if bodyLeft > 0 {
                let count = min(bodyLeft, bytes.count)
                if let passage { record.extend(passage, by: count) }
                bodyLeft -= count
                bytes = bytes.dropFirst(count)
                continue
            }
            guard let byte = bytes.popFirst() else { return }
            head.append(byte)
            if head.count > Self.headBytesMax { isOpaque = true }
            if byte == 0x0A, head.suffix(4).elementsEqual([13, 10, 13, 10]) { finishHead(&record) }
        }
    }

    private mutating func finishHead(_ record: inout PassageRecord) {
        let text = String(decoding: head, as: UTF8.self)
        head = []
        record.requests += 1
        let lines = text.split(whereSeparator: \.isNewline)
        let words = (lines.first ?? "").split(separator: " ")
        var fields = [String: String]()
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            fields[line[..<colon].lowercased()] = String(value)
        }
        if fields["upgrade"] != nil { isOpaque = true }
        bodyLeft = fields["content-length"].flatMap { Int($0) } ?? 0
        passage = nil
        guard words.count > 2 else { return }
        let path = words[1].split(separator: "/")
        guard path.contains("blob") else { return }
        if words[0] == "PUT", let number = path.last.flatMap({ Int($0) }), number > 0 {
            let start = (number - 1) * Self.partBytes
            let resource = "PUT " + path.dropLast().joined(separator: "/")
            passage = record.begin(resource, start..<start, whole: bodyLeft)
        } else if words[0] == "GET", let range = Self.range(fields["range"]) {
            _ = record.begin("GET " + path.joined(separator: "/"), range, whole: 0)
        }
    }

    /// `bytes=0-99`
    private static func range(_ field: String?) -> Range<Int>? {
        let numbers = (field ?? "").drop { $0 != "=" }.dropFirst().split(separator: "-").compactMap { Int($0) }
        guard numbers.count == 2, numbers[0] <= numbers[1] else { return nil }
        return numbers[0]..<numbers[1] + 1
    }
}
