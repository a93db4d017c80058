// Code that uses a tree needs paths, names, ids and sections too.
@_exported import ThicketTree
@_exported import ThicketTreeShape
