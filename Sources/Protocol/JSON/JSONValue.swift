/// A JSON value as a tree: what applications and the merge work with. Numbers stay as written, keys keep their order.
///
/// Equality is by value: objects regardless of key order, numbers by decimal value (1 = 1.0), strings byte by byte
/// (Swift's own `String ==` holds "é" and "e" + accent equal; a merge that did so would lose edits).
public enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)
}
