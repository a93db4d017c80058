#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Finds and compares runs of code units, in time proportional to their length for any content.
enum UnitSearch {
    /// Length of the common prefix of two texts, in units.
    static func commonPrefix(_ left: Units, _ right: Units) -> Int {
        let count = min(left.count, right.count)
        guard count > 0, let left = left.baseAddress, let right = right.baseAddress else { return 0 }
        var place = 0
        while place + 4 <= count {
            let one = UnsafeRawPointer(left + place).loadUnaligned(as: UInt64.self)
            let two = UnsafeRawPointer(right + place).loadUnaligned(as: UInt64.self)
            if one != two { break }
            place += 4
        }
        while place < count, left[place] == right[place] { place += 1 }
        return place
    }

    /// Length of the common suffix of two texts, in units.
    static func commonSuffix(_ left: Units, _ right: Units) -> Int {
        let count = min(left.count, right.count)
        guard count > 0, let leftBase = left.baseAddress, let rightBase = right.baseAddress else { return 0 }
        let (leftEnd, rightEnd) = (leftBase + left.count, rightBase + right.count)
        var place = 0
        while place + 4 <= count {
            let one = UnsafeRawPointer(leftEnd - place - 4).loadUnaligned(as: UInt64.self)
            let two = UnsafeRawPointer(rightEnd - place - 4).loadUnaligned(as: UInt64.self)
            if one != two { break }
            place += 4
        }
        while place < count, leftEnd[-1 - place] == rightEnd[-1 - place] { place += 1 }
        return place
    }

    static func areEqual(_ left: Units, _ right: Units) -> Bool {
        guard left.count == right.count else { return false }
        guard left.count > 0, let left = left.baseAddress, let other = right.baseAddress else { return true }
        return memcmp(left, other, right.count * 2) == 0
    }

    /// The first place of `needle` in `text` at or after `start`; nil when it does not occur. An empty needle is found
    /// at `start`.
    static func first(_ needle: Units, in text: Units, from start: Int = 0) -> Int? {
        guard start <= text.count - needle.count else { return nil }
        guard needle.count > 0, let wanted = needle.baseAddress, let base = text.baseAddress else { return start }
        let last = text.count - needle.count
        // Comparing at each place is fastest while few places match partly; hostile texts use the other algorithm.
        var compared = 0
        let patience = 4 * (text.count - start) + 256
        var place = start
        while place <= last {
            if base[place] == wanted[0] {
                var length = 1
                while length < needle.count, base[place + length] == wanted[length] { length += 1 }
                if length == needle.count { return place }
                compared += length
                if compared > patience { return firstByPrefixes(needle, in: text, from: place + 1) }
            }
            place += 1
        }
        return nil
    }

    /// The algorithm of Knuth, Morris and Pratt: reads each unit of `text` once.
    private static func firstByPrefixes(_ needle: Units, in text: Units, from start: Int) -> Int? {
        let borders = self.borders(of: needle)
        var matched = 0
        var place = start
        while place < text.count {
            while matched > 0, text[place] != needle[matched] { matched = Int(borders[matched - 1]) }
            if text[place] == needle[matched] { matched += 1 }
            place += 1
            if matched == needle.count { return place - matched }
        }
        return nil
    }

    /// For each prefix the length of the longest shorter prefix that is also its suffix.
    private static func borders(of text: Units) -> [Int32] {
        var borders: [Int32] = Array(repeating: 0, count: text.count)
        var length = 0
        var place = 1
        while place < text.count {
            while length > 0, text[place] != text[length] { length = Int(borders[length - 1]) }
            if text[place] == text[length] { length += 1 }
            borders[place] = Int32(truncatingIfNeeded: length)
            place += 1
        }
        return borders
    }

    /// The last place of a short, non-empty `needle` in `text` at or before `start`; nil when it does not occur.
    static func last(_ needle: Units, in text: Units, from start: Int) -> Int? {
        guard let first: UInt16 = needle.first, needle.count <= text.count else { return nil }
        var place = min(start, text.count - needle.count)
        while place >= 0 {
            if text[place] == first, areEqual(needle, text.part(place, place + needle.count)) { return place }
            place -= 1
        }
        return nil
    }

    /// Length of the longest suffix of `left` that is a prefix of `right`.
    static func overlap(_ left: Units, _ right: Units) -> Int {
        let longest = min(left.count, right.count)
        guard longest > 0 else { return 0 }
        let tail = left.from(left.count - longest)
        let head = right.upTo(longest)
        if areEqual(tail, head) { return longest }
        let borders = self.borders(of: head)
        var matched = 0
        for unit in tail {
            while matched > 0, matched == longest || unit != head[matched] { matched = Int(borders[matched - 1]) }
            if unit == head[matched] { matched += 1 }
        }
        return matched
    }
}
