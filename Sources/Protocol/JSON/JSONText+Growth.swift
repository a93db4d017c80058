extension JSONText {
    /// Bytes by which the JSON text of a string grows when the string is replaced by another; negative when it shrinks.
    ///
    /// It counts only the bytes between the common prefix and the common suffix, because bytes are escaped one by one.
    package static func growth(from old: String, to new: String) -> Int {
        old.withBytes { (before: UnsafeBufferPointer<UInt8>) -> Int in
            new.withBytes { (after: UnsafeBufferPointer<UInt8>) -> Int in
                let most = min(before.count, after.count)
                let start = commonStart(before, after, most)
                let end = commonEnd(before, after, most - start)
                return quotedSize(.init(rebasing: after[start..<(after.count - end)]))
                    - quotedSize(.init(rebasing: before[start..<(before.count - end)]))
            }
        }
    }

    /// Length of the common prefix in bytes, at most `most`.
    private static func commonStart(
        _ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>, _ most: Int
    ) -> Int {
        guard let left = left.baseAddress, let right = right.baseAddress
        else { return 0 }
        var at = 0
        while at + 8 <= most {
            let difference = EightBytes.load(left + at) ^ EightBytes.load(right + at)
            if difference != 0 { return at + difference.trailingZeroBitCount / 8 }
            at += 8
        }
        while at < most, left[at] == right[at] { at += 1 }
        return at
    }

    /// Length of the common suffix in bytes, at most `most`.
    private static func commonEnd(
        _ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>, _ most: Int
    ) -> Int {
        guard let leftEnd = left.baseAddress.map({ $0 + left.count }),
            let rightEnd = right.baseAddress.map({ $0 + right.count })
        else { return 0 }
        var count = 0
        while count + 8 <= most {
            let difference = EightBytes.load(leftEnd - count - 8) ^ EightBytes.load(rightEnd - count - 8)
            if difference != 0 { return count + difference.leadingZeroBitCount / 8 }
            count += 8
        }
        while count < most, leftEnd[-count - 1] == rightEnd[-count - 1] { count += 1 }
        return count
    }
}
