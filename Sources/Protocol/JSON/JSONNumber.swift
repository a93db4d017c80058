/// A JSON number, kept as it was written.
public struct JSONNumber: Sendable, Hashable {
    public let lexeme: String
    init(unchecked lexeme: String) { self.lexeme = lexeme }
}
