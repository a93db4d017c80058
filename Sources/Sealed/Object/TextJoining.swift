import ThicketProtocol

/// Lays two versions of one text into each other: everything that stands in either is there.
///
/// Where both have something of their own, what mine has stands whole behind what theirs has, with the words around and
/// the few units between that both have: letters that are alike by chance must not weave two sentences into one that
/// nobody can read.
struct TextJoining {
    /// UTF-16 units that both have, from which on what differs before them and behind them are two places.
    private static let commonMin = 16

    private var joined = [UInt16]()
    private var theirs = [UInt16]()
    private var mine = [UInt16]()
    /// What both have, behind the place that is open.
    private var common = [UInt16]()
    private var hasTheirs = false
    private var hasMine = false

    /// - Parameter edit: leads from `theirs` to mine.
    static func join(_ theirs: String, with edit: TextDelta) -> String {
        let source: [UInt16] = Array(theirs.utf16)
        var joining = TextJoining()
        var place = 0
        for operation in edit.operations {
            switch operation {
            case .retain(let count):
                joining.keep(source[place..<(place + count)])
                place += count
            case .delete(let count):
                guard count > 0 else { continue }
                joining.open()
                joining.theirs += source[place..<(place + count)]
                joining.hasTheirs = true
                place += count
            case .insert(let units):
                joining.open()
                joining.mine += units
                joining.hasMine = true
            }
        }
        if joining.isTwofold { joining.open() }
        joining.close()
        return String(decoding: joining.joined + joining.common, as: UTF16.self)
    }

    private var isTwofold: Bool { hasTheirs && hasMine }

    /// What both have before this belongs to the place.
    private mutating func open() {
        theirs += common
        mine += common
        common = []
    }

    private mutating func keep(_ units: ArraySlice<UInt16>) {
        common += units
        guard common.count >= Self.commonMin else { return }
        // Words stay whole: the one that the place ends in belongs to it, and the last one may belong to the next.
        if isTwofold, let end = common.prefix(Self.commonMin).firstIndex(where: Self.isSpace) {
            theirs += common[..<end]
            mine += common[..<end]
            common.removeFirst(end)
        }
        close()
        let last: Int? = common.suffix(Self.commonMin).lastIndex(where: Self.isSpace)
        let begin = last.map { $0 + 1 } ?? common.count
        joined += common[..<begin]
        common.removeFirst(begin)
    }

    private mutating func close() {
        // Where only one has something of its own, it has all that the other has.
        if hasTheirs || !hasMine { joined += theirs }
        if hasMine { joined += mine }
        (theirs, mine, hasTheirs, hasMine) = ([], [], false, false)
    }

    private static func isSpace(_ unit: UInt16) -> Bool { unit == 0x20 || (0x09...0x0D).contains(unit) }
}
