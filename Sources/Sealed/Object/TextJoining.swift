import ThicketProtocol

/// Joins two versions of one text so that all content of both is kept.
///
/// Where both have content of their own, mine follows theirs as a whole, with the surrounding words and the few common
/// units in between: letters that are equal by chance must not mix two sentences into an unreadable one.
struct TextJoining {
    /// Number of common UTF-16 units from which on the differences before and after them are two separate places.
    private static let commonMin = 16

    private var joined = [UInt16]()
    private var theirs = [UInt16]()
    private var mine = [UInt16]()
    /// The common units after the current place.
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

    /// Makes the preceding common units part of the current place.
    private mutating func open() {
        theirs += common
        mine += common
        common = []
    }

    private mutating func keep(_ units: ArraySlice<UInt16>) {
        common += units
        guard common.count >= Self.commonMin else { return }
        // Words stay whole: the word in which the place ends belongs to it, and the last one may belong to the next
        // place.
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
        // Where only one side has its own content, that side includes the common units.
        if hasTheirs || !hasMine { joined += theirs }
        if hasMine { joined += mine }
        (theirs, mine, hasTheirs, hasMine) = ([], [], false, false)
    }

    private static func isSpace(_ unit: UInt16) -> Bool { unit == 0x20 || (0x09...0x0D).contains(unit) }
}
