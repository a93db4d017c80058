/// Splits messages at their colons (wire contract, section 3): the first one ends the channel, the second one the
/// command; an argument may contain more of them.
enum WireText {
    static let colon = UInt8(ascii: ":")
    /// Digits of a channel number that are read at most; a longer one is out of range unless it begins with zeros.
    private static let channelDigitsMax = 16

    /// The bytes before and after the first colon; nil for the second part without a colon.
    static func split(_ bytes: ArraySlice<UInt8>) -> (head: ArraySlice<UInt8>, rest: ArraySlice<UInt8>?) {
        guard let place = bytes.firstIndex(of: colon) else { return (bytes, nil) }
        return (bytes[..<place], bytes[(place + 1)...])
    }

    /// Reads a channel number.
    ///
    /// - Returns: nil when `digits` is empty or contains other bytes than digits.
    static func channel(_ digits: ArraySlice<UInt8>) throws(WireError) -> ChannelNumber? {
        guard !digits.isEmpty, digits.allSatisfy({ $0 &- 0x30 < 10 }) else { return nil }
        guard digits.count <= channelDigitsMax else { throw .channelNumber }
        let number = digits.reduce(0) { $0 * 10 + UInt64($1 &- 0x30) }
        guard number <= UInt64(Limits.channelNumberMax) else { throw .channelNumber }
        return ChannelNumber(number)
    }

    /// A whole number in plain digits, with an optional minus sign.
    static func integer(_ digits: ArraySlice<UInt8>) -> Int64? {
        digits.withUnsafeBufferPointer(JSONNumber.plainInteger)
    }

    /// A version: an unsigned number in plain digits without leading zeros, because the answer must repeat it byte by
    /// byte.
    static func version(_ digits: ArraySlice<UInt8>) -> Version? {
        guard let first = digits.first, first != UInt8(ascii: "-") else { return nil }
        guard first != UInt8(ascii: "0") || digits.count == 1 else { return nil }
        return integer(digits)
    }

    /// `KEY.VERSION`, split at the last dot, because keys may contain dots (wire contract, section 5).
    static func reference(_ argument: ArraySlice<UInt8>) -> (key: String, version: Version)? {
        guard let dot = argument.lastIndex(of: UInt8(ascii: ".")), dot > argument.startIndex else { return nil }
        guard let version = version(argument[(dot + 1)...]) else { return nil }
        return (key: text(argument[..<dot]), version: version)
    }

    static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

    @inline(__always)
    static func equals(_ bytes: ArraySlice<UInt8>, _ text: StaticString) -> Bool {
        guard bytes.count == text.utf8CodeUnitCount else { return false }
        return bytes.withUnsafeBufferPointer { (left: UnsafeBufferPointer<UInt8>) -> Bool in
            sameBytes(left, UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        }
    }
}

extension JSONNode {
    /// A string, or a number as written: clients differ in which of the two they send.
    var looseText: String? { string ?? number?.lexeme }

    /// A whole number, written as a number or as a string.
    var looseInteger: Int64? {
        if let int64 { return int64 }
        return string.flatMap { JSONNumber(lexeme: $0)?.int64 }
    }
}

extension JSONWriter {
    /// Writes `CHANNEL:COMMAND`, the start of every message of a channel.
    public mutating func head(_ channel: ChannelNumber, _ command: StaticString) {
        write(Int64(channel))
        raw(byte: WireText.colon)
        raw(command)
    }

    /// Writes the bytes of a text that is not JSON.
    mutating func plain(_ text: String) {
        text.withBytes { (source: UnsafeBufferPointer<UInt8>) -> Void in bytes.append(contentsOf: source) }
    }

    /// Writes an array of strings: `["a","b"]`.
    public mutating func write(strings: [String]) {
        raw(byte: UInt8(ascii: "["))
        for (place, text) in strings.enumerated() {
            if place > 0 { raw(byte: UInt8(ascii: ",")) }
            write(string: text)
        }
        raw(byte: UInt8(ascii: "]"))
    }
}
