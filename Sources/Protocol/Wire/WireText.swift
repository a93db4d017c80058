/// Cuts messages at their colons (wire contract, section 3): the first one ends the channel, the next one the command;
/// an argument may hold more of them.
enum WireText {
    static let colon = UInt8(ascii: ":")
    /// Digits of a channel number that are looked at; more are out of range anyway, unless they are zeros.
    private static let channelDigitsMax = 16

    /// What stands before and after the first colon; nothing after it (nil) when there is none.
    static func split(_ bytes: ArraySlice<UInt8>) -> (head: ArraySlice<UInt8>, rest: ArraySlice<UInt8>?) {
        guard let place = bytes.firstIndex(of: colon) else { return (bytes, nil) }
        return (bytes[..<place], bytes[(place + 1)...])
    }

    /// A channel number.
    /// - Returns: nil when `digits` is not all digits.
    static func channel(_ digits: ArraySlice<UInt8>) throws(WireError) -> ChannelNumber? {
        guard !digits.isEmpty, digits.allSatisfy({ $0 &- 0x30 < 10 }) else { return nil }
        guard digits.count <= channelDigitsMax else { throw .channelNumber }
        let number = digits.reduce(0) { $0 * 10 + UInt64($1 &- 0x30) }
        guard number <= UInt64(Limits.channelNumberMax) else { throw .channelNumber }
        return ChannelNumber(number)
    }

    /// A whole number in plain digits, perhaps behind a minus sign.
    static func integer(_ digits: ArraySlice<UInt8>) -> Int64? {
        digits.withUnsafeBufferPointer(JSONNumber.plainInteger)
    }

    /// A version, as an unsigned number in plain digits without leading zeros: it must come back as it went.
    static func version(_ digits: ArraySlice<UInt8>) -> Version? {
        guard let first = digits.first, first != UInt8(ascii: "-") else { return nil }
        guard first != UInt8(ascii: "0") || digits.count == 1 else { return nil }
        return integer(digits)
    }

    /// `KEY.VERSION`, cut at the last dot: keys contain dots (wire contract, section 5).
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
    /// A string, or a number as it is written: clients differ in which of the two they send.
    var looseText: String? { string ?? number?.lexeme }

    /// A whole number, written as a number or as a string.
    var looseInteger: Int64? {
        if let int64 { return int64 }
        return string.flatMap { JSONNumber(lexeme: $0)?.int64 }
    }
}

extension JSONWriter {
    /// `CHANNEL:COMMAND`, the start of every message of a channel.
    public mutating func head(_ channel: ChannelNumber, _ command: StaticString) {
        write(Int64(channel))
        raw(byte: WireText.colon)
        raw(command)
    }

    /// Bytes of a text that is no JSON.
    mutating func plain(_ text: String) {
        text.withBytes { (source: UnsafeBufferPointer<UInt8>) -> Void in bytes.append(contentsOf: source) }
    }

    /// `["a","b"]`.
    public mutating func write(strings: [String]) {
        raw(byte: UInt8(ascii: "["))
        for (place, text) in strings.enumerated() {
            if place > 0 { raw(byte: UInt8(ascii: ",")) }
            write(string: text)
        }
        raw(byte: UInt8(ascii: "]"))
    }
}
