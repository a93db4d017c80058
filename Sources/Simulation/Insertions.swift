/// Changes whose authors only inserted into texts: wherever they are carried, nothing may go.
///
/// A change that is refused is made anew under its own ccid (0082), and may delete then: where an object was gone and
/// its author brings it back as a whole beside somebody who does the same, one of the two texts takes the place of the
/// other. So a change counts only when it inserts in every form in which it was sent, whichever of them the server
/// applies.
struct Insertions {
    private var known = [String: Bool]()

    /// A client sends a change of a text.
    mutating func sent(_ changeID: String, insertsOnly: Bool) {
        known[changeID] = insertsOnly && known[changeID, default: true]
    }

    func isInsertion(_ changeID: String) -> Bool { known[changeID, default: false] }
}
