/// The two texts of a note.
public enum NoteField: Sendable, Hashable, CaseIterable {
    case title, info

    /// UTF-16 code units of the clear text at most (the first notes app counted so).
    public var unitsMax: Int {
        switch self {
        case .title: 30
        case .info: 2_500
        }
    }

    /// Its member of the stored object, and the name that sealing binds it to.
    public var member: String {
        switch self {
        case .title: "onionTitle"
        case .info: "onionInfo"
        }
    }

    /// Letters of a sealed text that the longest clear text takes; servers refuse more.
    var lettersMax: Int {
        switch self {
        case .title: 222
        case .info: 10_410
        }
    }
}
