/// The two texts of a note.
public enum NoteField: Sendable, Hashable, CaseIterable {
    /// The title, and the text below it.
    case title, info

    /// Most UTF-16 code units of the clear text (the unit of the first notes app).
    public var unitsMax: Int {
        switch self {
        case .title: 30
        case .info: 2_500
        }
    }

    /// Its member of the stored object, and the name to which sealing binds it.
    public var member: String {
        switch self {
        case .title: "onionTitle"
        case .info: "onionInfo"
        }
    }

    /// Letters of the sealed form of the longest clear text; servers refuse more.
    var lettersMax: Int {
        switch self {
        case .title: 222
        case .info: 10_410
        }
    }
}
