-- The one parser of annotations.
return {}
