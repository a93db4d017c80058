/// Changes whose authors only inserted into texts: wherever they are rebased, they must not delete anything.
///
/// A refused change is made again under the same ccid (0005), and may delete then: if an object was gone and two
/// authors bring it back as a whole, one of the two texts replaces the other. So a change counts only if every form in
/// which it was sent inserts only, whichever of them the server applies.
struct Insertions {
    private var known = [String: Bool]()

    /// A client sends a change of a text.
    mutating func sent(_ changeID: String, insertsOnly: Bool) {
        known[changeID] = insertsOnly && known[changeID, default: true]
    }

    func isInsertion(_ changeID: String) -> Bool { known[changeID, default: false] }
}
