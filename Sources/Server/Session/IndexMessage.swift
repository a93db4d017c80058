import ThicketProtocol

/// Position of an index scan: the log position it is a snapshot of, and the one below which it continues.
///
/// On the wire two cvs with a dot between, so that it reveals nothing and only this server in this epoch can decode
/// it.
struct IndexMark: Equatable {
    let current: GlobalID
    let before: GlobalID
    /// As `IndexQuery.replacedCurrent`.
    let replacedCurrent: GlobalID?

    init(current: GlobalID, before: GlobalID, replacedCurrent: GlobalID? = nil) {
        self.current = current
        self.before = before
        self.replacedCurrent = replacedCurrent
    }

    /// nil when the text is not a mark of this bucket: the scan starts from the beginning.
    init?(_ text: String, codec: ChangeVersionCodec, tag: UInt32) {
        let parts: [Substring] = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2 || parts.count == 3,
            let current = codec.decode(String(parts[0]), tag: tag),
            let before = codec.decode(String(parts[1]), tag: tag)
        else { return nil }
        let replacedCurrent = parts.count == 3 ? codec.decode(String(parts[2]), tag: tag) : nil
        guard parts.count == 2 || replacedCurrent != nil else { return nil }
        self.init(current: current, before: before, replacedCurrent: replacedCurrent)
    }

    func text(_ codec: ChangeVersionCodec, tag: UInt32) -> [UInt8] {
        var text = codec.encode(current, tag: tag) + [0x2E] + codec.encode(before, tag: tag)
        if let replacedCurrent { text += [0x2E] + codec.encode(replacedCurrent, tag: tag) }
        return text
    }
}

/// Writes index pages.
enum IndexMessage {
    /// The page of a bucket without objects.
    static func empty(_ channel: ChannelNumber, current: [UInt8]) -> SharedFrame {
        var starts = [Int]()
        return page(channel, current: current, entries: [], mark: nil, starts: &starts)
    }

    /// - Parameters:
    ///   - current: cv of the scan.
    ///   - mark: absent on the last page.
    ///   - total: objects in the whole scan, sent only beside a mark, where clients can show progress; 0: not known.
    ///   - starts: gets the offset of each body in the frame.
    static func page(
        _ channel: ChannelNumber, current: [UInt8], entries: [IndexEntry], mark: [UInt8]?, total: Int = 0,
        starts: inout [Int]
    ) -> SharedFrame {
        var text = Reply.head(channel, "i:{\"current\":\"")
        text.reserveCapacity(
            text.count + 160 + entries.reduce(0) { $0 + $1.key.text.utf8.count + 48 + ($1.body?.count ?? 0) })
        text.append(contentsOf: current)
        text.append(contentsOf: "\",\"index\":[".utf8)
        for (index, entry) in entries.enumerated() {
            if index > 0 { text.append(0x2C) }
            text.append(contentsOf: "{\"id\":\"".utf8)
            text.append(contentsOf: entry.key.text.utf8)
            text.append(contentsOf: "\",\"v\":".utf8)
            text.append(contentsOf: String(entry.version).utf8)
            if let body = entry.body {
                text.append(contentsOf: ",\"d\":".utf8)
                starts.append(text.count)
                text.append(contentsOf: body)
            }
            text.append(0x7D)
        }
        text.append(0x5D)
        if let mark {
            text.append(contentsOf: ",\"mark\":\"".utf8)
            text.append(contentsOf: mark)
            text.append(UInt8(ascii: "\""))
            if total > 0 { text.append(contentsOf: ",\"count\":\(total)".utf8) }
        }
        text.append(0x7D)
        let frame = SharedFrame(text: text)
        let head = frame.bytes.count - text.count
        for place in starts.indices { starts[place] += head }
        return frame
    }
}
